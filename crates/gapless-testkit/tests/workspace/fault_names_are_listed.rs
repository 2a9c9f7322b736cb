//! `gapless-agent/src/fault.rs` lists every crash point and mutant, and the sources use each. Calls check names only
//! while one is armed, because they are on the hot path.

use std::collections::BTreeSet;

use super::rust_tokens::{self, Token, TokenKind};
use super::workspace;

#[test]
fn fault_names_are_listed_and_used() {
    let list = workspace::root().join("crates/gapless-agent/src/fault.rs");
    let (mut called, mut named) = (BTreeSet::new(), BTreeSet::new());
    for (_, folder) in workspace::crates() {
        for file in workspace::sources(&folder.join("src")) {
            if file != list {
                let text = std::fs::read_to_string(&file).expect("a source file can be read");
                read(&rust_tokens::tokens(&text), &mut called, &mut named);
            }
        }
    }
    let text = std::fs::read_to_string(&list).expect("the list can be read");
    let (mut points, mut mutants) = (BTreeSet::new(), BTreeSet::new());
    for item in rust_tokens::items(&rust_tokens::tokens(&text)).1 {
        let Some(name) = item.body.get(1).and_then(Token::word).filter(|_| item.body[0].is_word("const")) else {
            continue;
        };
        let into = if name == "MUTANTS" { &mut mutants } else { &mut points };
        literals(item.body, into);
    }
    assert!(points.len() > 100 && mutants.len() > 10, "{} points, {} mutants", points.len(), mutants.len());
    let mut wrong = Vec::new();
    for (function, name) in &called {
        let listed = if function == "mutant" { &mutants } else { &points };
        if !listed.contains(name) {
            wrong.push(format!("{function}({name:?}) is not listed in fault.rs"));
        }
    }
    // A table or a caller may pass a name on.
    let unused = points.union(&mutants).filter(|name| !named.contains(*name));
    wrong.extend(unused.map(|name| format!("{name:?} is listed in fault.rs, and no source names it")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Calls with a name, and all string literals.
fn read(tokens: &[Token<'_>], called: &mut BTreeSet<(String, String)>, named: &mut BTreeSet<String>) {
    literals(tokens, named);
    for (index, token) in tokens.iter().enumerate() {
        let TokenKind::Group(delimiter, inside) = &token.kind else { continue };
        let function = index.checked_sub(1).and_then(|before| tokens[before].word());
        if let (Some(function @ ("crash_point" | "mutant")), '(', Some(TokenKind::Literal(text))) =
            (function, delimiter, inside.first().map(|first| &first.kind))
        {
            called.insert((function.to_owned(), text.trim_matches('"').to_owned()));
        }
        read(inside, called, named);
    }
}

fn literals(tokens: &[Token<'_>], into: &mut BTreeSet<String>) {
    for token in tokens {
        match &token.kind {
            TokenKind::Literal(text) => _ = into.insert(text.trim_matches('"').to_owned()),
            TokenKind::Group(_, inside) => literals(inside, into),
            TokenKind::Word(_) | TokenKind::Mark(_) => {}
        }
    }
}
