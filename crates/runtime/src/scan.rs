//! Stepping through JSON without decoding it.
//!
//! Every write of every run comes by here, so what does not matter must cost next to nothing. Names
//! are compared as they are written: no server escapes the names that are looked for.

use memchr::{memchr_iter, memchr2};

/// The members of an object, each as its name and its value in JSON, until something is no JSON.
#[derive(Debug)]
pub(crate) struct Members<'a>(Scanner<'a>);

/// The elements of a list, each in JSON, until something is no JSON.
#[derive(Debug)]
pub(crate) struct Elements<'a>(Scanner<'a>);

#[derive(Debug)]
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// What ends the object or list.
    end: u8,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    First,
    Further,
    Complete,
    Broken,
}

// === impl Members ===

impl<'a> Members<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Self(Scanner::inside(text, b'{', b'}'))
    }

    /// Goes to the next member and tells its name. Its value must be [taken](Self::value) before the next
    /// one.
    pub(crate) fn name(&mut self) -> Option<&'a [u8]> {
        self.0.step(|scanner| {
            scanner.take(b'"')?;
            let name = scanner.string()?;
            scanner.take(b':')?;
            Some(name)
        })
    }

    /// Goes behind the value of `managedFields`, which is most of an object's metadata, mostly without
    /// looking at every byte of it.
    ///
    /// The field sets in it are objects in objects, so that `}]` is its end, or stands in a string. What
    /// comes behind a string is never the first letter of another one. That holds of JSON without spaces, as
    /// servers write it; any other is looked at byte by byte.
    pub(crate) fn skip_managed_fields(&mut self) -> Option<()> {
        let rest = self.rest();
        let is_compact = rest.starts_with(b"[{");
        for found in memchr_iter(b']', rest).take_while(|_| is_compact) {
            if found.checked_sub(1).and_then(|at| rest.get(at)) != Some(&b'}') {
                continue;
            }
            let end = found + 1;
            match rest.get(end..end + 3)? {
                [b',', b'"', next] if next.is_ascii_alphabetic() => {
                    self.0.at += end;
                    return Some(());
                }
                // Perhaps the end, where it is the last member. Perhaps a string.
                [next, ..] if *next == b'}' || next.is_ascii_whitespace() => break,
                _ => {}
            }
        }
        self.value().map(drop)
    }

    /// The value of the member.
    pub(crate) fn value(&mut self) -> Option<&'a [u8]> {
        let value = self.0.value();
        if value.is_none() {
            self.0.state = State::Broken;
        }
        value
    }

    /// Goes behind the value of the member, an object that `inside` was stepped through to its end.
    pub(crate) fn leave(&mut self, inside: &Self) -> Option<()> {
        let behind = self.0.text.len().checked_sub(inside.rest().len());
        self.0.at = behind.filter(|_| inside.is_complete())?;
        Some(())
    }

    /// The text from the member's value on, whose end is not looked for. Behind the last member it is what comes
    /// after the object.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0.text.get(self.0.at..).unwrap_or_default()
    }

    /// Whether the object has come to its end.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.state == State::Complete
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.name()?;
        Some((name, self.value()?))
    }
}

// === impl Elements ===

impl<'a> Elements<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Self(Scanner::inside(text, b'[', b']'))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(Scanner::value)
    }
}

// === impl Scanner ===

impl<'a> Scanner<'a> {
    fn inside(text: &'a [u8], begin: u8, end: u8) -> Self {
        let mut scanner = Self {
            text,
            at: 0,
            end,
            state: State::First,
        };
        if scanner.take(begin).is_none() {
            scanner.state = State::Broken;
        }
        scanner
    }

    /// The next part, if there is one.
    fn step<T>(&mut self, part: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if matches!(self.state, State::Complete | State::Broken) {
            return None;
        }
        if self.take(self.end).is_some() {
            self.state = State::Complete;
            return None;
        }
        let apart = self.state == State::First || self.take(b',').is_some();
        let found = apart.then(|| part(self)).flatten();
        self.state = match found {
            Some(_) => State::Further,
            None => State::Broken,
        };
        found
    }

    /// Goes to the next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Goes behind the next byte that is no space, if it is this one.
    fn take(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    /// Goes behind a value.
    fn value(&mut self) -> Option<&'a [u8]> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => {
                self.at += 1;
                self.string()?;
            }
            b'{' | b'[' => self.nested()?,
            _ => {
                let rest = self.text.get(start..)?;
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':');
                let length = rest
                    .iter()
                    .position(|byte| is_end(byte) || byte.is_ascii_whitespace())?;
                self.at += (length > 0).then_some(length)?;
            }
        }
        self.text.get(start..self.at)
    }

    /// Goes behind a string whose beginning is passed, and tells what is in it.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        loop {
            let rest = self.text.get(self.at..)?;
            let found = memchr2(b'"', b'\\', rest)?;
            let end = self.at + found;
            self.at = end + 1;
            if rest.get(found) == Some(&b'"') {
                return self.text.get(start..end);
            }
            // What is escaped.
            self.at += 1;
        }
    }

    /// Goes behind an object or a list.
    fn nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            let byte = *self.text.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => drop(self.string()?),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Elements, Members};

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)], complete: bool) {
        let mut members = Members::of(text.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let found: Vec<_> = members
            .by_ref()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(members.is_complete(), complete);
    }

    #[test]
    fn members_come_as_they_are_written() {
        check("{}", &[], true);
        check(" { } ", &[], true);
        check(
            r#" { "a" : 1 , "b":"x\"},\\" ,"c":{"d":["}"]},"e":[{},"]"],"f":null} "#,
            &[
                ("a", "1"),
                ("b", r#""x\"},\\""#),
                ("c", r#"{"d":["}"]}"#),
                ("e", r#"[{},"]"]"#),
                ("f", "null"),
            ],
            true,
        );
    }

    #[test]
    fn what_breaks_off_is_known_as_far_as_it_goes() {
        let whole = r#"{"a":{"b":"c\\"},"d":[1,2],"e":true}"#;
        let parts = [("a", r#"{"b":"c\\"}"#), ("d", "[1,2]"), ("e", "true")];
        for end in 0..whole.len() {
            let text = &whole[..end];
            let known = parts.iter().filter(|(_, value)| {
                // A value without quotes or braces is known to end by what comes after it.
                let behind = usize::from(!value.ends_with(['}', ']']));
                whole.find(value).unwrap() + value.len() + behind <= end
            });
            let known: Vec<_> = known.copied().collect();
            check(text, &known, false);
        }
        check(whole, &parts, true);
    }

    #[test]
    fn managed_fields_are_stepped_over() {
        let sets = [
            "[]",
            "[{}]",
            r#"[{"fieldsV1":{"f:data":{".":{},"f:a":{}}},"manager":"m"},{"manager":"n"}]"#,
            r#"[ { "fieldsV1" : { "f:a" : { } } } ]"#,
            // Names and values of others' making.
            r#"[{"fieldsV1":{"f:x}],":{},"f:}]}":{},"v:{\"a\":[{}]}":{},"v:[[{}],1]":{}}}]"#,
            r#"[{"fieldsV1":{"v:{\"a\":[{\"b\":1}],\"c\":2}":{}},"manager":"a}],"}]"#,
        ];
        for set in sets {
            for behind in [r#","name":"a""#, "", r#" , "name":"a""#] {
                let text = format!(r#"{{"managedFields":{set}{behind}}},"spec":[{{}}],"x":1"#);
                let mut members = Members::of(text.as_bytes());
                assert_eq!(members.name(), Some(&b"managedFields"[..]));
                assert_eq!(members.skip_managed_fields(), Some(()), "{text}");
                let name = (!behind.is_empty()).then_some((&b"name"[..], &b"\"a\""[..]));
                assert_eq!(members.next(), name, "{text}");
                assert_eq!(members.next(), None, "{text}");
                assert!(members.is_complete(), "{text}");
            }
        }
    }

    #[test]
    fn an_object_inside_is_left_at_its_end() {
        let mut members = Members::of(br#"{"a":{"b":{"c":"}"} },"d":1}"#);
        assert_eq!(members.name(), Some(&b"a"[..]));
        let mut inside = Members::of(members.rest());
        assert_eq!(members.leave(&inside), None, "it has not come to its end");
        assert_eq!(inside.by_ref().count(), 1);
        assert_eq!(members.leave(&inside), Some(()));
        assert_eq!(members.next(), Some((&b"d"[..], &b"1"[..])));
        assert_eq!(members.next(), None);
        assert!(members.is_complete() && members.rest().is_empty());
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in [
            "", "gone", "[]", "1", "\"a\"", "{\"a\"}", "{1:2}", "{,}", "{\"a\":}", "{]",
        ] {
            check(text, &[], false);
        }
        check(r#"{"a":1 "b":2}"#, &[("a", "1")], false);
    }

    #[test]
    fn elements_come_as_they_are_written() {
        let elements = |text: &'static str| -> Vec<&str> {
            let elements = Elements::of(text.as_bytes());
            elements
                .map(|element| std::str::from_utf8(element).unwrap())
                .collect()
        };
        assert_eq!(
            elements(r#"[ {"a":[1]} , "x,y" ,3]"#),
            [r#"{"a":[1]}"#, r#""x,y""#, "3"]
        );
        assert_eq!(elements("[]"), [""; 0]);
        assert_eq!(elements("{}"), [""; 0]);
    }
}
