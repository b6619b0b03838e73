//! The words of an expression.

use super::source::Issue;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The first character, counted from the start of the source.
    pub(crate) offset: u32,
    /// One past the last character.
    pub(crate) end: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    Ident(String),
    Int(String),
    Uint(String),
    Float(String),
    Text(String),
    Bytes(Vec<u8>),
    /// An operator or a bracket.
    Sign(&'static str),
    /// A name in backquotes, which this version of the language does not have.
    Quoted(String),
    End,
}

/// Longer signs come before their beginnings.
const SIGNS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "<", ">", "=", "&", "|",
];

/// Signs that are no words of their own.
const HALVES: [&str; 3] = ["=", "&", "|"];

struct Lexer<'a> {
    characters: &'a [char],
    position: usize,
    issues: Vec<Issue>,
}

/// The words of a source, and what in it is no word.
pub(crate) fn tokens(characters: &[char]) -> (Vec<Token>, Vec<Issue>) {
    let mut lexer = Lexer {
        characters,
        position: 0,
        issues: Vec::new(),
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let start = lexer.position;
        let kind = if start >= characters.len() {
            Some(TokenKind::End)
        } else {
            lexer.token()
        };
        let at_end = kind == Some(TokenKind::End);
        match kind {
            Some(kind) => tokens.push(Token {
                kind,
                offset: offset(start),
                end: offset(lexer.position),
            }),
            None => lexer.unreadable(start),
        }
        if at_end {
            return (tokens, lexer.issues);
        }
    }
}

fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

// === impl Lexer ===

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.position + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(' ' | '\t' | '\r' | '\n' | '\u{c}'), _) => self.position += 1,
                (Some('/'), Some('/')) => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.position += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Reports what is no word, and goes on behind it.
    fn unreadable(&mut self, start: usize) {
        self.position = self.position.max(start + 1).min(self.characters.len());
        let text: String = self.characters[start..self.position].iter().collect();
        let text = text
            .replace('\n', "\\n")
            .replace('\t', "\\t")
            .replace('\r', "\\r");
        self.issues.push(Issue {
            offset: offset(start),
            message: format!("Syntax error: token recognition error at: '{text}'"),
        });
    }

    fn token(&mut self) -> Option<TokenKind> {
        let first = self.peek(0)?;
        if let Some(text) = self.text() {
            return text;
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Some(TokenKind::Ident(
                self.take(|c| c.is_ascii_alphanumeric() || c == '_'),
            ));
        }
        let fraction = first == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit());
        if first.is_ascii_digit() || fraction {
            return Some(self.number());
        }
        if first == '`' {
            return self.quoted();
        }
        let sign = SIGNS.into_iter().find(|sign| {
            let mut characters = sign.chars().enumerate();
            characters.all(|(index, c)| self.peek(index) == Some(c))
        })?;
        self.position += sign.len();
        (!HALVES.contains(&sign)).then_some(TokenKind::Sign(sign))
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek(0).filter(|c| belongs(*c)) {
            taken.push(c);
            self.position += 1;
        }
        taken
    }

    fn quoted(&mut self) -> Option<TokenKind> {
        self.position += 1;
        let name = self.take(|c| c.is_ascii_alphanumeric() || "_.-/ ".contains(c));
        if name.is_empty() || self.peek(0) != Some('`') {
            return None;
        }
        self.position += 1;
        Some(TokenKind::Quoted(name))
    }

    fn number(&mut self) -> TokenKind {
        let hex = self.peek(0) == Some('0') && self.peek(1) == Some('x');
        if hex && self.peek(2).is_some_and(|c| c.is_ascii_hexdigit()) {
            self.position += 2;
            let digits = self.take(|c| c.is_ascii_hexdigit());
            return self.whole(format!("0x{digits}"));
        }
        let mut text = self.take(|c| c.is_ascii_digit());
        let mut float = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            self.position += 1;
            text.push('.');
            text.push_str(&self.take(|c| c.is_ascii_digit()));
            float = true;
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let signed = matches!(self.peek(1), Some('+' | '-'));
            let digits = if signed { 2 } else { 1 };
            if self.peek(digits).is_some_and(|c| c.is_ascii_digit()) {
                for _ in 0..digits {
                    text.extend(self.peek(0));
                    self.position += 1;
                }
                text.push_str(&self.take(|c| c.is_ascii_digit()));
                float = true;
            }
        }
        if float {
            TokenKind::Float(text)
        } else {
            self.whole(text)
        }
    }

    fn whole(&mut self, digits: String) -> TokenKind {
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.position += 1;
            return TokenKind::Uint(digits);
        }
        TokenKind::Int(digits)
    }

    /// A text in quotes. None if none begins here; `Some(None)` if one begins that does not end.
    #[expect(
        clippy::option_option,
        reason = "no text and a text without an end are two things"
    )]
    fn text(&mut self) -> Option<Option<TokenKind>> {
        let (mut raw, mut bytes, mut length) = (false, false, 0);
        while let Some(c) = self.peek(length) {
            match c {
                'r' | 'R' if !raw => raw = true,
                'b' | 'B' if !bytes && length == 0 => bytes = true,
                '"' | '\'' => break,
                _ => return None,
            }
            length += 1;
        }
        let quote = self.peek(length)?;
        self.position += length;
        let triple = (1..3).all(|ahead| self.peek(ahead) == Some(quote));
        self.position += if triple { 3 } else { 1 };
        Some(self.quoted_text(quote, triple, raw, bytes))
    }

    fn quoted_text(
        &mut self,
        quote: char,
        triple: bool,
        raw: bool,
        bytes: bool,
    ) -> Option<TokenKind> {
        let mut made = Made::new(bytes);
        loop {
            let c = self.peek(0)?;
            let ends = if triple {
                (0..3).all(|ahead| self.peek(ahead) == Some(quote))
            } else {
                c == quote
            };
            if ends {
                self.position += if triple { 3 } else { 1 };
                return Some(made.finish());
            }
            if !triple && matches!(c, '\n' | '\r') {
                return None;
            }
            self.position += 1;
            if c == '\\' && !raw {
                self.escape(&mut made)?;
            } else {
                made.character(c);
            }
        }
    }

    fn escape(&mut self, made: &mut Made) -> Option<()> {
        let c = self.peek(0)?;
        self.position += 1;
        let plain = match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '`' | '?' => c,
            'x' | 'X' => return made.code(self.digits(16, 2)?),
            'u' if !made.bytes => return made.code(self.digits(16, 4)?),
            'U' if !made.bytes => return made.code(self.digits(16, 8)?),
            '0'..='3' => {
                self.position -= 1;
                return made.code(self.digits(8, 3)?);
            }
            _ => return None,
        };
        made.character(plain);
        Some(())
    }

    fn digits(&mut self, radix: u32, count: usize) -> Option<u32> {
        let mut code = 0u32;
        for _ in 0..count {
            let digit = self.peek(0)?.to_digit(radix)?;
            code = code.checked_mul(radix)?.checked_add(digit)?;
            self.position += 1;
        }
        Some(code)
    }
}

/// A text that is being read.
struct Made {
    bytes: bool,
    text: String,
    raw: Vec<u8>,
}

// === impl Made ===

impl Made {
    fn new(bytes: bool) -> Self {
        Self {
            bytes,
            text: String::new(),
            raw: Vec::new(),
        }
    }

    fn character(&mut self, c: char) {
        if self.bytes {
            let mut buffer = [0; 4];
            self.raw
                .extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        } else {
            self.text.push(c);
        }
    }

    fn code(&mut self, code: u32) -> Option<()> {
        if self.bytes {
            self.raw.push(u8::try_from(code).ok()?);
        } else {
            self.text.push(char::from_u32(code)?);
        }
        Some(())
    }

    fn finish(self) -> TokenKind {
        if self.bytes {
            TokenKind::Bytes(self.raw)
        } else {
            TokenKind::Text(self.text)
        }
    }
}
