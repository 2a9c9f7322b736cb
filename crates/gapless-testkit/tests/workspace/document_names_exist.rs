//! Every file, function, type, crate and test that a document names exists, and every link has a target. `gapless-cli`
//! tests the command lines.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gapless_testkit::documents::{self, Document};

use super::rust_tokens::{self, Token, TokenKind};
use super::workspace;

/// Linux, Rust and Cargo, protocols, libraries, the machines of examples.
const FOREIGN: &[&str] = include!("foreign_names.in");

#[test]
fn names_in_documents_exist() {
    let root = workspace::root();
    let (mut wrong, mut looked_at) = (Vec::new(), 0);
    // Old names, which no longer exist.
    for path in documents::of_workspace(&root).into_iter().filter(|path| !path.ends_with("docs/renames.md")) {
        let text = std::fs::read_to_string(&path).expect("a document can be read");
        let shown = path.strip_prefix(&root).expect("the file is in the workspace").display().to_string();
        let document = Document::parse(&text);
        looked_at += document.code.len() + document.links.len();
        wrong.extend(
            HOUSE.unknown_names(&path, &document).into_iter().map(|(line, what)| format!("{shown}:{line}: {what}")),
        );
    }
    assert!(looked_at > 2_000, "only {looked_at} names were checked");
    assert!(wrong.is_empty(), "{} names in documents do not exist:\n{}", wrong.len(), wrong.join("\n"));
}

/// Read once for both tests.
static HOUSE: LazyLock<KnownNames> = LazyLock::new(|| KnownNames::read(&workspace::root()));

struct KnownNames {
    root: PathBuf,
    /// Split into parts.
    files: Vec<Vec<String>>,
    /// Folders, and files without extension; split, without `src`.
    places: Vec<Vec<String>>,
    crates: BTreeSet<String>,
    items: DefinedItems,
    /// Names in texts, metrics, options of files.
    words: HashSet<String>,
    foreign: BTreeSet<&'static str>,
}

impl KnownNames {
    fn read(root: &Path) -> Self {
        let mut house = Self {
            root: root.to_path_buf(),
            files: Vec::new(),
            places: Vec::new(),
            crates: BTreeSet::new(),
            items: DefinedItems::default(),
            words: HashSet::new(),
            foreign: FOREIGN.iter().copied().collect(),
        };
        for name in ["crates", "docs", "benchmarks", "fuzz", ".ci"] {
            house.places.push(vec![name.to_owned()]);
            house.read_folder(&root.join(name));
        }
        for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Cargo.toml", "deny.toml"] {
            house.take(&root.join(name));
        }
        house.crates = std::fs::read_dir(root.join("crates"))
            .expect("crates")
            .map(|entry| name_of(&entry.expect("a crate").path()))
            .collect();
        house
    }

    fn read_folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry of a folder").path();
            let name = name_of(&path);
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | "corpus" | "artifacts") {
                    self.places.push(self.parts(&path).into_iter().filter(|part| part != "src").collect());
                    self.read_folder(&path);
                }
            } else {
                self.take(&path);
            }
        }
    }

    fn take(&mut self, path: &Path) {
        let parts = self.parts(path);
        self.places.push(self.parts(&path.with_extension("")).into_iter().filter(|part| part != "src").collect());
        self.files.push(parts);
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        // Documents are no sources, and this file contains names that must not exist.
        let is_this = path.file_stem().is_some_and(|name| name == "document_names_exist");
        if is_this || matches!(extension, "md" | "json" | "txt" | "svg" | "csv" | "in") {
            return;
        }
        let Ok(text) = std::fs::read_to_string(path) else { return };
        // With hyphens, as in names of threads and options, and without.
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-') {
            for part in std::iter::once(word).chain(word.split('-').filter(|part| part.len() < word.len())) {
                if !self.words.contains(part) {
                    self.words.insert(part.to_owned());
                }
            }
        }
        if extension == "rs" {
            self.items.read(&rust_tokens::tokens(&text));
        }
    }

    fn parts(&self, path: &Path) -> Vec<String> {
        let relative = path.strip_prefix(&self.root).expect("the file is in the workspace");
        relative.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    }

    /// Names with lines; `path` is the document's own.
    fn unknown_names(&self, path: &Path, document: &Document) -> Vec<(usize, String)> {
        let mut unknown_names = Vec::new();
        for piece in &document.code {
            // Names that the document's own examples define.
            let is_own =
                |name: &str| document.blocks.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
            if let Some(what) = self.unknown_name_reason(&piece.text)
                && !is_own(piece.text.split("::").next().unwrap_or_default())
            {
                unknown_names.push((piece.line, format!("`{}`: {what}", piece.text)));
            }
        }
        for piece in &document.links {
            if let Some(what) = self.broken_link_reason(path, document, &piece.text) {
                unknown_names.push((piece.line, format!("({}): {what}", piece.text)));
            }
        }
        unknown_names.sort();
        unknown_names
    }

    fn broken_link_reason(&self, from: &Path, document: &Document, target: &str) -> Option<&'static str> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
        let path = from.parent().expect("a document lies in a folder").join(file);
        if !file.is_empty() && !path.exists() {
            return Some("there is no such file");
        }
        let anchor = anchor?;
        let is_there = if file.is_empty() {
            document.anchors.contains(anchor)
        } else {
            std::fs::read_to_string(path).is_ok_and(|text| Document::parse(&text).anchors.contains(anchor))
        };
        (!is_there).then_some("there is no such heading")
    }

    fn unknown_name_reason(&self, text: &str) -> Option<&'static str> {
        let name = text.trim_end_matches(['…', ';', ',', '!']).trim_start_matches(['&', '@']);
        if name.is_empty() || self.foreign.contains(name) || name.contains(['=', '{', '<', '|', '*', '"', '$']) {
            return None;
        }
        let is_call = name.ends_with(')');
        let name = match name.split_once('(') {
            Some((function, _)) => {
                function.trim_start_matches("…").rsplit_once('.').map_or(function, |(_, method)| method)
            }
            None => name,
        };
        if name.contains(char::is_whitespace) {
            return None;
        }
        let file_end = [".rs", ".md", ".xml", ".svg"].iter().any(|end| name.ends_with(end));
        if file_end
            || ["crates/", "docs/", "benchmarks/", "gapless-", "tests/"].iter().any(|start| name.starts_with(start))
                && name.contains('/')
        {
            return (!self.is_path(name)).then_some("there is no such file");
        }
        if name.contains('/') || name.contains('.') {
            return None;
        }
        if let Some((before, last)) = name.rsplit_once("::") {
            let owner = before.rsplit("::").next().unwrap_or(before);
            if self.foreign.contains(owner) || self.foreign.contains(before) {
                return None;
            }
            return (!self.items.has_member(owner, last)).then_some("there is no such item");
        }
        if name.starts_with("gapless-") {
            let is_there = self.crates.contains(name) || self.words.contains(name);
            return (!is_there).then_some("there is no such crate or name");
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            || name.len() < 4
            || name.starts_with(|c: char| c.is_ascii_digit())
        {
            return None;
        }
        let is_type =
            name.starts_with(|c: char| c.is_ascii_uppercase()) && name.contains(|c: char| c.is_ascii_lowercase());
        if is_type {
            return (!self.items.names.contains(name)).then_some("there is no such type");
        }
        if is_call {
            return (!self.items.names.contains(name)).then_some("there is no such function");
        }
        if name.contains('_') {
            return (!self.words.contains(name) && !self.is_path(name)).then_some("there is no such name");
        }
        None
    }

    /// Some path ends with `name`; `src` and the extension may be left out.
    fn is_path(&self, name: &str) -> bool {
        let parts = name.trim_end_matches('/').split('/').map(str::to_owned).collect::<Vec<_>>();
        let short = parts.iter().filter(|part| *part != "src").cloned().collect::<Vec<_>>();
        self.files.iter().any(|file| file.ends_with(&parts)) || self.places.iter().any(|place| place.ends_with(&short))
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a path has a name").to_string_lossy().into_owned()
}

#[derive(Default)]
struct DefinedItems {
    /// All names, without their owners.
    names: BTreeSet<String>,
    members: BTreeMap<String, BTreeSet<String>>,
    traits: BTreeMap<String, BTreeSet<String>>,
}

impl DefinedItems {
    fn define(&mut self, owner: &str, member: String) {
        self.names.insert(member.clone());
        self.members.entry(owner.to_owned()).or_default().insert(member);
    }

    fn has_member(&self, owner: &str, member: &str) -> bool {
        let has = |owner: &str| self.members.get(owner).is_some_and(|members| members.contains(member));
        let of_traits = || self.traits.get(owner).is_some_and(|traits| traits.iter().any(|name| has(name)));
        // Items of modules are not recorded by module.
        let of_module = || owner.starts_with(|c: char| c.is_ascii_lowercase()) && self.names.contains(member);
        has(owner) || of_traits() || of_module()
    }

    /// Covers every level.
    fn read(&mut self, tokens: &[Token<'_>]) {
        for (index, token) in tokens.iter().enumerate() {
            if let TokenKind::Group(_, inside) = &token.kind {
                self.read(inside);
                continue;
            }
            let Some(keyword) = token.word() else { continue };
            let rest = &tokens[index + 1..];
            let name = rest.iter().find(|token| !token.is_word("mut") && !token.is_mark('!')).and_then(Token::word);
            let body = || {
                let end = rest.iter().find(|token| token.is_mark(';') || token.group('{').is_some());
                end.and_then(|token| token.group('{')).unwrap_or_default()
            };
            match (keyword, name) {
                ("fn" | "const" | "static" | "type" | "mod" | "macro_rules", Some(name)) => {
                    self.names.insert(name.to_owned());
                }
                ("struct" | "union", Some(name)) => {
                    self.names.insert(name.to_owned());
                    self.fields(name, body());
                }
                ("enum", Some(name)) => {
                    self.names.insert(name.to_owned());
                    for variant in body().split(|token| token.is_mark(',')) {
                        let Some(at) = variant.iter().position(|token| token.word().is_some()) else { continue };
                        let variant_name = variant[at].word().expect("the token is a word");
                        self.define(name, variant_name.to_owned());
                        let fields = variant.get(at + 1).and_then(|token| token.group('{'));
                        self.fields(variant_name, fields.unwrap_or_default());
                    }
                }
                ("trait", Some(name)) => {
                    self.names.insert(name.to_owned());
                    self.members(name, body());
                }
                ("impl", _) if is_at_item(&tokens[..index]) => {
                    let end = rest.iter().position(|token| token.is_mark(';') || token.group('{').is_some());
                    let (owner, of_trait) = implemented(&rest[..end.unwrap_or(0)]);
                    if let (Some(owner), Some(of_trait)) = (owner, of_trait) {
                        self.traits.entry(owner.to_owned()).or_default().insert(of_trait.to_owned());
                    }
                    self.members(owner.unwrap_or_default(), body());
                }
                _ => {}
            }
        }
    }

    /// Names before a lone colon, of a type or a variant.
    fn fields(&mut self, owner: &str, tokens: &[Token<'_>]) {
        for (index, pair) in tokens.windows(2).enumerate() {
            let is_path = tokens.get(index + 2).is_some_and(|token| token.is_mark(':'));
            if let Some(name) = pair[0].word().filter(|_| pair[1].is_mark(':') && !is_path) {
                self.define(owner, name.to_owned());
            }
        }
    }

    fn members(&mut self, owner: &str, tokens: &[Token<'_>]) {
        for pair in tokens.windows(2) {
            if let (Some("fn" | "const" | "type"), Some(name)) = (pair[0].word(), pair[1].word()) {
                self.define(owner, name.to_owned());
            }
        }
    }
}

/// An item, not a type, may begin after `before`.
fn is_at_item(before: &[Token<'_>]) -> bool {
    let Some(last) = before.last() else { return true };
    last.is_mark(';') || last.is_word("unsafe") || last.group('{').is_some() || last.group('[').is_some()
}

/// Type and trait, from the tokens between `impl` and its block.
fn implemented<'a>(tokens: &[Token<'a>]) -> (Option<&'a str>, Option<&'a str>) {
    let (mut owner, mut of_trait, mut depth) = (None, None, 0);
    for (index, token) in tokens.iter().enumerate() {
        if token.is_mark('<') {
            depth += 1;
        } else if token.is_mark('>') {
            depth -= i32::from(index == 0 || !tokens[index - 1].is_mark('-'));
        } else if depth == 0 && token.is_word("where") {
            break;
        } else if depth == 0 && token.is_word("for") {
            of_trait = owner.take();
        } else if depth == 0 {
            owner = token.word().or(owner);
        }
    }
    (owner, of_trait)
}

#[test]
fn unknown_names_are_found() {
    let root = workspace::root();
    let text = "See `ingress.rs`, `gapless-stream/src/nowhere.rs` and `Sequencer::decide`.\n\
                `Sequencer::undecide` and `NoSuchType`, `a_test_that_nobody_wrote` or `no_call()` are not there.\n\
                `gapless-nothing` neither, nor [this](nothing.md) or [that](ARCHITECTURE.md#nothing).\n\
                `siblings_have_no_import_cycles`, `ModuleTree`, `gapless-wire` and [these](README.md#results) are.\n";
    let document = Document::parse(text);
    let unknown_names = HOUSE.unknown_names(&root.join("AN_EXAMPLE.md"), &document);
    let lines = unknown_names.iter().map(|(line, _)| *line).collect::<Vec<_>>();
    assert_eq!(lines, [1, 2, 2, 2, 2, 3, 3, 3], "{unknown_names:#?}");
}
