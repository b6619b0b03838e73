//! `JSONPath` as printer columns use it: the dialect of `kubectl -o jsonpath`, for one expression.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::Value;

/// A path into an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// `.a`, `['a']`, `['a','b']`
    Members(Vec<String>),
    /// `[0]`, `[-1]`, `[0,2]`
    Elements(Vec<i64>),
    /// `[1:3]`, `[::2]`, `[*]`
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        stride: usize,
    },
    /// `.*`
    All,
    /// `..`: the value itself and everything in it.
    Descend,
    /// `[?(@.a == 'b')]`
    Filter(Filter),
}

#[derive(Debug, Clone, PartialEq)]
enum Filter {
    Exists(Vec<Step>),
    Compare {
        left: Operand,
        comparison: Comparison,
        right: Operand,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    /// `@.a`: relative to the element.
    Path(Vec<Step>),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
}

// === impl JsonPath ===

impl JsonPath {
    /// Reads a path. None if it is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser {
            rest: text.chars().peekable(),
        };
        parser.skip_spaces();
        parser.take('$');
        let steps = parser.steps()?;
        parser.skip_spaces();
        parser.rest.next().is_none().then_some(Self { steps })
    }

    /// The first value that the path leads to.
    pub(crate) fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        walk(&self.steps, object).into_iter().next()
    }
}

/// Every value that the steps lead to.
fn walk<'a>(steps: &[Step], from: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![from];
    for step in steps {
        found = found
            .into_iter()
            .flat_map(|value| step.follow(value))
            .collect();
    }
    found
}

fn everything_in<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(value);
    for inner in children(value) {
        everything_in(inner, found);
    }
}

fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let elements = value.as_array().into_iter().flatten();
    let members = value.as_object().into_iter().flat_map(|map| map.values());
    elements.chain(members)
}

/// The place of an index that may count from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    if index < 0 {
        let back = usize::try_from(index.unsigned_abs()).ok()?;
        length.checked_sub(back)
    } else {
        usize::try_from(index).ok()
    }
}

// === impl Step ===

impl Step {
    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let elements = value.as_array().map_or(&[][..], Vec::as_slice);
        match self {
            Self::Members(names) => names.iter().filter_map(|name| value.get(name)).collect(),
            Self::Elements(indexes) => indexes
                .iter()
                .filter_map(|index| elements.get(place(*index, elements.len())?))
                .collect(),
            Self::Slice { start, end, stride } => {
                let bound = |index: Option<i64>, otherwise| {
                    let index = index.map_or(Some(otherwise), |i| place(i, elements.len()));
                    index.unwrap_or(0).min(elements.len())
                };
                let (start, end) = (bound(*start, 0), bound(*end, elements.len()));
                let chosen = elements.get(start..end).unwrap_or_default();
                chosen.iter().step_by(*stride).collect()
            }
            Self::All => children(value).collect(),
            Self::Descend => {
                let mut found = Vec::new();
                everything_in(value, &mut found);
                found
            }
            Self::Filter(filter) => elements
                .iter()
                .filter(|element| filter.accepts(element))
                .collect(),
        }
    }
}

// === impl Filter ===

impl Filter {
    fn accepts(&self, element: &Value) -> bool {
        match self {
            Self::Exists(path) => !walk(path, element).is_empty(),
            Self::Compare {
                left,
                comparison,
                right,
            } => match (left.value(element), right.value(element)) {
                (Some(left), Some(right)) => comparison.holds(left, right),
                _ => false,
            },
        }
    }
}

// === impl Operand ===

impl Operand {
    fn value<'a>(&'a self, element: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => walk(path, element).into_iter().next(),
            Self::Literal(value) => Some(value),
        }
    }
}

// === impl Comparison ===

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => left.as_str().zip(right.as_str()).map(|(l, r)| l.cmp(r)),
        };
        let Some(order) = order else {
            // What has no order can still be equal.
            return match self {
                Self::Equal => left == right,
                Self::NotEqual => left != right,
                Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => false,
            };
        };
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

// === impl Parser ===

impl Parser<'_> {
    fn take(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    fn skip_spaces(&mut self) {
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
    }

    /// Steps until something else comes.
    fn steps(&mut self) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if self.take('.') {
                if self.take('.') {
                    steps.push(Step::Descend);
                    if self.rest.peek() == Some(&'[') {
                        continue;
                    }
                }
                if self.take('*') {
                    steps.push(Step::All);
                    continue;
                }
                let name = self.name();
                // A lone dot is the value itself.
                if !name.is_empty() {
                    steps.push(Step::Members(vec![name]));
                }
            } else if self.take('[') {
                steps.push(self.brackets()?);
            } else {
                return Some(steps);
            }
        }
    }

    /// A name, in which a backslash makes the next character an ordinary one.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self
            .rest
            .next_if(|c| !c.is_whitespace() && !".[]()=!<>,".contains(*c))
        {
            match c {
                '\\' => name.extend(self.rest.next()),
                other => name.push(other),
            }
        }
        name
    }

    /// What is in brackets, behind the opening one.
    fn brackets(&mut self) -> Option<Step> {
        self.skip_spaces();
        let step = match self.rest.peek()? {
            '?' => {
                self.rest.next();
                Step::Filter(self.filter()?)
            }
            // Elements of a list, and not members of an object.
            '*' => {
                self.rest.next();
                Step::Slice {
                    start: None,
                    end: None,
                    stride: 1,
                }
            }
            '\'' | '"' => {
                let mut names = vec![self.quoted()?];
                while self.comma() {
                    names.push(self.quoted()?);
                }
                Step::Members(names)
            }
            _ => self.numbers()?,
        };
        self.skip_spaces();
        self.take(']').then_some(step)
    }

    fn comma(&mut self) -> bool {
        self.skip_spaces();
        let found = self.take(',');
        self.skip_spaces();
        found
    }

    fn quoted(&mut self) -> Option<String> {
        let quote = self.rest.next_if(|c| ['\'', '"'].contains(c))?;
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                '\\' => text.push(self.rest.next()?),
                c if c == quote => return Some(text),
                c => text.push(c),
            }
        }
    }

    /// Indexes, or a slice.
    fn numbers(&mut self) -> Option<Step> {
        let mut text = String::new();
        while let Some(c) = self.rest.next_if(|c| *c != ']') {
            text.push(c);
        }
        let number = |text: &str| text.trim().parse::<i64>().ok();
        if !text.contains(':') {
            let indexes: Option<Vec<i64>> = text.split(',').map(number).collect();
            return indexes.map(Step::Elements);
        }
        let mut parts = text.split(':').map(str::trim);
        let mut part = || match parts.next() {
            None | Some("") => Some(None),
            Some(text) => number(text).map(Some),
        };
        let (start, end, stride) = (part()?, part()?, part()?);
        let stride = usize::try_from(stride.unwrap_or(1)).ok()?;
        (stride > 0).then_some(Step::Slice { start, end, stride })
    }

    /// A filter behind its question mark.
    fn filter(&mut self) -> Option<Filter> {
        if !self.take('(') {
            return None;
        }
        let left = self.operand()?;
        self.skip_spaces();
        let filter = if self.rest.peek() == Some(&')') {
            match left {
                Operand::Path(path) => Filter::Exists(path),
                Operand::Literal(_) => return None,
            }
        } else {
            let comparison = self.comparison()?;
            let right = self.operand()?;
            Filter::Compare {
                left,
                comparison,
                right,
            }
        };
        self.skip_spaces();
        self.take(')').then_some(filter)
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let first = self.rest.next()?;
        let or_equal = self.take('=');
        match (first, or_equal) {
            ('=', true) => Some(Comparison::Equal),
            ('!', true) => Some(Comparison::NotEqual),
            ('<', true) => Some(Comparison::LessOrEqual),
            ('>', true) => Some(Comparison::GreaterOrEqual),
            ('<', false) => Some(Comparison::Less),
            ('>', false) => Some(Comparison::Greater),
            _ => None,
        }
    }

    fn operand(&mut self) -> Option<Operand> {
        self.skip_spaces();
        if self.take('@') {
            return self.steps().map(Operand::Path);
        }
        if ['\'', '"'].contains(self.rest.peek()?) {
            return self.quoted().map(|text| Operand::Literal(text.into()));
        }
        let mut text = String::new();
        while let Some(c) = self
            .rest
            .next_if(|c| c.is_alphanumeric() || "+-.".contains(*c))
        {
            text.push(c);
        }
        // Numbers, true, false and null are written as in JSON.
        serde_json::from_str(&text).ok().map(Operand::Literal)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &Value) {
        let object = json!({
            "metadata": { "annotations": { "example.com/a": "x", "a.b": "dots" } },
            "spec": {
                "tags": ["t1", "t2", "t3", "t4"],
                "ports": [
                    { "name": "web", "port": 80, "open": true },
                    { "name": "admin", "port": 8080 },
                ],
            },
        });
        let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path} is not a path"));
        let found: Value = walk(&parsed.steps, &object).into_iter().cloned().collect();
        assert_eq!(found, *expected, "{path}");
    }

    #[test]
    fn values_by_path() {
        check(".spec.tags[0]", &json!(["t1"]));
        check("$.spec.tags[-1]", &json!(["t4"]));
        check(".spec.tags[0,2]", &json!(["t1", "t3"]));
        check(".spec.tags[1:3]", &json!(["t2", "t3"]));
        check(".spec.tags[:-3]", &json!(["t1"]));
        check(".spec.tags[::2]", &json!(["t1", "t3"]));
        check(".spec.tags[3:1]", &json!([]));
        check(".spec.tags[9]", &json!([]));
        check(".spec.tags[-9]", &json!([]));
        check(".spec.ports[*].port", &json!([80, 8080]));
        check(".spec.ports.*.port", &json!([80, 8080]));
        check("..port", &json!([80, 8080]));
        check(".spec['tags'][1]", &json!(["t2"]));
        check(r#".spec.ports[0]["name", 'port']"#, &json!(["web", 80]));
        check(r".metadata.annotations.example\.com/a", &json!(["x"]));
        check(".metadata.annotations['a.b']", &json!(["dots"]));
        check(".status.phase", &json!([]));
    }

    #[test]
    fn elements_by_what_is_in_them() {
        check(".spec.ports[?(@.name=='web')].port", &json!([80]));
        check(r#".spec.ports[?(@.name != "web")].port"#, &json!([8080]));
        check(".spec.ports[?(@.port > 80)].name", &json!(["admin"]));
        check(
            ".spec.ports[?(@.port >= 80)].name",
            &json!(["web", "admin"]),
        );
        check(".spec.ports[?(@.port<8080)].name", &json!(["web"]));
        check(".spec.ports[?(@.port<=80)].name", &json!(["web"]));
        check(".spec.ports[?(@.open)].name", &json!(["web"]));
        check(".spec.ports[?(@.open==true)].name", &json!(["web"]));
        check(".spec.tags[?(@ == 't2')]", &json!(["t2"]));
        check(".spec.ports[?(@.port == '80')].name", &json!([]));
    }

    #[test]
    fn what_is_not_a_path() {
        for text in [
            ".a[",
            ".a[x]",
            ".a['b]",
            ".a[?(@.b=]",
            ".a[?('x')]",
            ".a[?(@.b=='c']",
            ".a[1:2:0]",
            ".a)",
            "a b",
        ] {
            assert_eq!(JsonPath::parse(text), None, "{text}");
        }
    }
}
