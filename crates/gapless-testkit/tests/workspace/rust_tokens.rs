//! Rust sources as trees of tokens with lines: as much as the house tests need, much faster than a full parser.
//! Comments, also doc comments, are left out.

use std::iter::Peekable;
use std::slice::Iter;

#[derive(Debug)]
pub struct Token<'a> {
    pub kind: TokenKind<'a>,
    /// Line, from 1.
    pub line: usize,
    pub last_line: usize,
}

#[derive(Debug)]
pub enum TokenKind<'a> {
    /// Name or keyword.
    Word(&'a str),
    /// A string with its quotes, a number, a lifetime.
    Literal(&'a str),
    Mark(char),
    /// Delimited tokens, with the opening delimiter.
    Group(char, Vec<Token<'a>>),
}

impl<'a> Token<'a> {
    pub fn word(&self) -> Option<&'a str> {
        if let TokenKind::Word(word) = self.kind { Some(word) } else { None }
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    pub fn is_mark(&self, mark: char) -> bool {
        matches!(self.kind, TokenKind::Mark(found) if found == mark)
    }

    pub fn group(&self, delimiter: char) -> Option<&[Self]> {
        match &self.kind {
            TokenKind::Group(found, inside) if *found == delimiter => Some(inside),
            _ => None,
        }
    }
}

/// Parses the tokens of a source file.
///
/// # Panics
/// If a delimiter is not matched.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut reader = TokenReader { text, bytes: text.as_bytes(), at: 0, line: 1 };
    if text.starts_with("#!/") {
        reader.skip_line();
    }
    let mut open = vec![(' ', 0, Vec::new())];
    while let Some(token) = reader.next() {
        match token.kind {
            TokenKind::Mark(mark @ ('(' | '[' | '{')) => open.push((mark, token.line, Vec::new())),
            TokenKind::Mark(')' | ']' | '}') => {
                let (delimiter, line, inside) = open.pop().expect("the file itself is open");
                let group = Token { kind: TokenKind::Group(delimiter, inside), line, last_line: token.line };
                let (_, _, outside) = open.last_mut().expect("every delimiter was opened");
                outside.push(group);
            }
            _ => open.last_mut().expect("the file itself is open").2.push(token),
        }
    }
    assert!(open.len() == 1, "a delimiter of line {} is not closed", open[open.len() - 1].1);
    open.remove(0).2
}

struct TokenReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'a> TokenReader<'a> {
    fn byte(&self, offset: usize) -> u8 {
        self.bytes.get(self.at + offset).copied().unwrap_or(0)
    }

    fn skip_line(&mut self) {
        self.at =
            self.bytes[self.at..].iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |n| self.at + n);
    }

    fn skip_blanks_and_comments(&mut self) {
        while self.at < self.bytes.len() {
            match (self.bytes[self.at], self.byte(1)) {
                (b'\n', _) => {
                    self.line += 1;
                    self.at += 1;
                }
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                (b'/', b'/') => self.skip_line(),
                (b'/', b'*') => self.skip_block_comment(),
                _ => return,
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.bytes.len() {
            match (self.bytes[self.at], self.byte(1)) {
                (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', b'/') => (depth, self.at) = (depth - 1, self.at + 2),
                (byte, _) => {
                    self.line += usize::from(byte == b'\n');
                    self.at += 1;
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks_and_comments();
        let (start, line) = (self.at, self.line);
        let first = *self.bytes.get(start)?;
        let is_word = is_of_word(first) && !first.is_ascii_digit();
        if is_word {
            self.skip_word();
            // Prefix of a string, or a raw name.
            let hashes = self.bytes[self.at..].iter().take_while(|byte| **byte == b'#').count();
            let is_prefix = matches!(&self.text[start..self.at], "r" | "b" | "br" | "c" | "cr");
            let is_raw = self.text[start..self.at].contains('r');
            if is_prefix && self.byte(hashes) == b'"' && (hashes == 0 || is_raw) {
                self.at += hashes;
                if is_raw { self.skip_raw_string(hashes) } else { self.skip_string() }
            } else if first == b'b' && self.at == start + 1 && self.byte(0) == b'\'' {
                self.skip_character();
            } else {
                let kind = TokenKind::Word(&self.text[start..self.at]);
                return Some(Token { kind, line, last_line: line });
            }
        } else if first.is_ascii_digit() {
            self.skip_word();
            if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
                self.at += 1;
                self.skip_word();
            }
        } else if first == b'"' {
            self.skip_string();
        } else if first == b'\'' {
            // A character, or a lifetime.
            let length = self.text[start + 1..].chars().next().map_or(1, char::len_utf8);
            if self.byte(1) == b'\\' || self.byte(1 + length) == b'\'' {
                self.skip_character();
            } else {
                self.at += 1;
                self.skip_word();
            }
        } else {
            self.at += 1;
            return Some(Token { kind: TokenKind::Mark(char::from(first)), line, last_line: line });
        }
        let kind = TokenKind::Literal(&self.text[start..self.at]);
        Some(Token { kind, line, last_line: self.line })
    }

    fn skip_word(&mut self) {
        while is_of_word(self.byte(0)) {
            self.at += 1;
        }
    }

    fn skip_string(&mut self) {
        self.skip_until_quote(b'"');
    }

    fn skip_character(&mut self) {
        self.skip_until_quote(b'\'');
    }

    fn skip_until_quote(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() && self.bytes[self.at] != quote {
            let length = if self.bytes[self.at] == b'\\' { 2 } else { 1 };
            let end = (self.at + length).min(self.bytes.len());
            self.line += self.bytes[self.at..end].iter().filter(|byte| **byte == b'\n').count();
            self.at = end;
        }
        self.at += 1;
    }

    fn skip_raw_string(&mut self, hashes: usize) {
        let end = format!("\"{}", "#".repeat(hashes));
        let length = self.text[self.at + 1..].find(&end).expect("a raw string ends") + 1 + end.len();
        self.line += self.bytes[self.at..self.at + length].iter().filter(|byte| **byte == b'\n').count();
        self.at += length;
    }
}

pub struct Item<'t, 'a> {
    /// Inner tokens.
    pub attributes: Vec<&'t [Token<'a>]>,
    pub tokens: &'t [Token<'a>],
    /// Tokens from its keyword on: `fn`, `mod`, `use`, `impl`; the name of a called macro.
    pub body: &'t [Token<'a>],
    pub is_public: bool,
}

/// Inner attributes, then items.
pub fn items<'t, 'a>(tokens: &'t [Token<'a>]) -> (Vec<&'t [Token<'a>]>, Vec<Item<'t, 'a>>) {
    let (mut inner, mut found, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        let start = at;
        let mut attributes = Vec::new();
        while tokens.get(at).is_some_and(|token| token.is_mark('#')) {
            let is_inner = tokens.get(at + 1).is_some_and(|token| token.is_mark('!'));
            at += 1 + usize::from(is_inner);
            let inside = tokens.get(at).and_then(|token| token.group('['));
            let inside = inside.unwrap_or_else(|| panic!("line {}: no attribute", tokens[at - 1].line));
            if is_inner {
                inner.push(inside)
            } else {
                attributes.push(inside)
            }
            at += 1;
        }
        let Some(first) = tokens.get(at) else { break };
        let is_public = first.is_word("pub");
        // Skips modifiers; `const` may be the keyword itself.
        loop {
            let is_const_function = tokens[at].is_word("const")
                && tokens
                    .get(at + 1)
                    .and_then(Token::word)
                    .is_some_and(|next| ["fn", "unsafe", "async", "extern"].contains(&next));
            let is_before = ["pub", "unsafe", "async"].iter().any(|word| tokens[at].is_word(word)) || is_const_function;
            let is_scope = at > start && tokens[at - 1].is_word("pub") && tokens[at].group('(').is_some();
            let is_abi =
                tokens[at].is_word("extern") && tokens[at + 1..].iter().take(2).any(|token| token.is_word("fn"));
            if is_before || is_scope {
                at += 1;
            } else if is_abi {
                at += 1 + usize::from(!tokens[at + 1].is_word("fn"));
            } else {
                break;
            }
        }
        let keyword = at;
        let ends_with_block = !["const", "static", "use", "type"].iter().any(|word| tokens[at].is_word(word));
        while at < tokens.len() && !tokens[at].is_mark(';') && !(ends_with_block && tokens[at].group('{').is_some()) {
            at += 1;
        }
        at = (at + 1).min(tokens.len());
        found.push(Item { attributes, tokens: &tokens[start..at], body: &tokens[keyword..at], is_public });
    }
    (inner, found)
}

/// Covers groups, too.
pub fn words<'a>(tokens: &[Token<'a>], into: &mut Vec<&'a str>) {
    for token in tokens {
        match &token.kind {
            TokenKind::Word(word) => into.push(word),
            TokenKind::Group(_, inside) => words(inside, into),
            TokenKind::Literal(_) | TokenKind::Mark(_) => {}
        }
    }
}

/// Parts and local name; `None` for a glob import.
pub type UsePath = (Vec<String>, Option<String>);

/// `tokens` follow the keyword.
pub fn used(tokens: &[Token<'_>]) -> Vec<UsePath> {
    let mut found = Vec::new();
    flatten(&mut tokens.iter().peekable(), &mut Vec::new(), &mut found);
    found
}

fn flatten(tokens: &mut Peekable<Iter<'_, Token<'_>>>, before: &mut Vec<String>, into: &mut Vec<UsePath>) {
    let depth = before.len();
    while let Some(token) = tokens.next() {
        match &token.kind {
            TokenKind::Word(word) => {
                let is_path = tokens.peek().is_some_and(|next| next.is_mark(':'));
                if is_path {
                    before.push((*word).to_owned());
                    continue;
                }
                let mut path = before.clone();
                if *word != "self" {
                    path.push((*word).to_owned());
                }
                let mut name = path.last().cloned();
                if tokens.next_if(|next| next.is_word("as")).is_some() {
                    name = tokens.next().and_then(Token::word).map(str::to_owned);
                }
                into.push((path, name));
            }
            TokenKind::Mark('*') => into.push((before.clone(), None)),
            TokenKind::Mark(',') => before.truncate(depth),
            TokenKind::Mark(';') => return,
            TokenKind::Group('{', inside) => {
                flatten(&mut inside.iter().peekable(), before, into);
            }
            _ => {}
        }
    }
    before.truncate(depth);
}

#[test]
fn literals_and_lifetimes_are_parsed() {
    let text =
        "fn f<'a>(x: &'a str) -> char { /* { */ let s = \"}\\\"{\"; let r = r#\"{\"\n\"#; // {\n '\\'' }\nmod b;";
    let found = tokens(text);
    let (_, items) = items(&found);
    assert_eq!(items.len(), 2, "{found:?}");
    let lines = items.iter().map(|item| (item.tokens[0].line, item.tokens[item.tokens.len() - 1].last_line));
    assert_eq!(lines.collect::<Vec<_>>(), [(1, 3), (4, 4)]);
}

#[test]
fn paths_of_a_use_are_listed() {
    let found = tokens("use a::{self, b::{C, D as E}, f::*};");
    let shown = used(&found[1..]).into_iter().map(|(path, name)| format!("{} {name:?}", path.join("::")));
    let expected = ["a Some(\"a\")", "a::b::C Some(\"C\")", "a::b::D Some(\"E\")", "a::f None"];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}
