//! Modules of a crate and their references, read from its sources. Tests do not count; macros are read as words.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::rust_tokens::{self, Item, Token, TokenKind};
use super::workspace;

/// Path within its crate; empty for the root.
pub type ModulePath = Vec<String>;

#[derive(Default)]
struct ModuleItems {
    children: BTreeSet<String>,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    named: Vec<(Vec<String>, usize)>,
    file: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleReference {
    /// Path of the module with the reference.
    pub from: ModulePath,
    /// Path of the module with the definition.
    pub to: ModulePath,
    pub place: String,
    pub written: Vec<String>,
}

pub struct ModuleTree {
    modules: BTreeMap<ModulePath, ModuleItems>,
}

/// Trees by crate, read once for all tests: of the library, or of the program without one.
pub static TREES: LazyLock<BTreeMap<String, ModuleTree>> = LazyLock::new(|| {
    let root_of = |folder: &Path| {
        let roots = ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file));
        roots.into_iter().find(|file| file.is_file()).expect("a crate has a root")
    };
    workspace::crates().into_iter().map(|(name, folder)| (name, ModuleTree::read(&root_of(&folder)))).collect()
});

impl ModuleTree {
    /// `root_file` is a `lib.rs` or `main.rs`.
    pub fn read(root_file: &Path) -> ModuleTree {
        let mut tree = ModuleTree { modules: BTreeMap::new() };
        let folder = root_file.parent().expect("a source file lies in a folder");
        tree.read_file(root_file, folder, Vec::new());
        tree
    }

    /// Resolved to the defining modules.
    pub fn namings(&self) -> Vec<ModuleReference> {
        let mut found = Vec::new();
        for (from, module) in &self.modules {
            for (written, line) in &module.named {
                if let Some(to) = self.resolve(from, written, 0)
                    && to != *from
                {
                    found.push(ModuleReference {
                        from: from.clone(),
                        to,
                        place: format!("{}:{line}", module.file.display()),
                        written: written.clone(),
                    });
                }
            }
        }
        found
    }

    pub fn len(&self) -> usize {
        self.modules.len()
    }

    fn read_file(&mut self, file: &Path, children_folder: &Path, path: ModulePath) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tokens = rust_tokens::tokens(&text);
        self.read_items(&tokens, file, children_folder, path);
    }

    fn read_items(&mut self, tokens: &[Token<'_>], file: &Path, children_folder: &Path, path: ModulePath) {
        let (attributes, items) = rust_tokens::items(tokens);
        if attributes.iter().any(|attribute| is_for_tests(attribute)) {
            return;
        }
        let mut module = ModuleItems { file: file.to_path_buf(), ..ModuleItems::default() };
        let mut children = Vec::new();
        for item in items {
            if item.attributes.iter().any(|attribute| is_for_tests(attribute)) {
                continue;
            }
            if let Some(name) = defined_name(&item) {
                module.items.insert(name);
            }
            let keyword = item.body[0].word().unwrap_or_default();
            match keyword {
                "use" => {
                    let line = item.body[0].line;
                    for (written, name) in rust_tokens::used(&item.body[1..]) {
                        match name {
                            Some(name) => _ = module.imports.insert(name, written.clone()),
                            None => module.globs.push(written.clone()),
                        }
                        // A re-export is no dependency of its module: the users' paths are followed through it.
                        if !item.is_public {
                            module.named.push((written, line));
                        }
                    }
                }
                "mod" => {
                    module.children.insert(module_name(&item));
                    children.push(item);
                }
                _ => PathCollector { into: &mut module.named }.words(item.tokens),
            }
        }
        self.modules.insert(path.clone(), module);
        for child in children {
            let name = module_name(&child);
            let mut child_path = path.clone();
            child_path.push(name.clone());
            let folder = children_folder.join(&name);
            match child.body.iter().find_map(|token| token.group('{')) {
                Some(inside) => self.read_items(inside, file, &folder, child_path),
                None => {
                    let named_by_attribute = child.attributes.iter().find_map(|attribute| path_attribute(attribute));
                    let candidates = match named_by_attribute {
                        Some(named) => vec![file.parent().expect("a folder").join(named)],
                        None => vec![children_folder.join(format!("{name}.rs")), folder.join("mod.rs")],
                    };
                    let found = candidates.iter().find(|candidate| candidate.is_file());
                    let found = found.unwrap_or_else(|| panic!("{}: no file of module {name}", file.display()));
                    self.read_file(found, &folder, child_path);
                }
            }
        }
    }

    /// `None` for names of other crates and for locals.
    fn resolve(&self, from: &[String], written: &[String], depth: usize) -> Option<ModulePath> {
        if depth > 12 {
            return None;
        }
        let (mut at, mut rest) = match written.first()?.as_str() {
            "crate" => (Vec::new(), &written[1..]),
            "self" => (from.to_vec(), &written[1..]),
            "super" => {
                let mut at = from.to_vec();
                let mut rest = written;
                while rest.first().is_some_and(|segment| segment == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
                (at, rest)
            }
            _ => (from.to_vec(), written),
        };
        let mut first = !matches!(written[0].as_str(), "crate" | "self" | "super");
        while let Some(segment) = rest.first() {
            let module = self.modules.get(&at)?;
            if module.children.contains(segment) && (!first || rest.len() > 1) {
                at.push(segment.clone());
                rest = &rest[1..];
                first = false;
                continue;
            }
            if module.items.contains(segment) {
                return Some(at);
            }
            if let Some(import) = module.imports.get(segment)
                && import != written
            {
                return self.resolve_import(&at, import, depth);
            }
            for glob in &module.globs {
                let mut path = glob.clone();
                path.push(segment.clone());
                if path != written
                    && let Some(found) = self.resolve_import(&at, &path, depth)
                {
                    return Some(found);
                }
            }
            return if first { None } else { Some(at) };
        }
        Some(at)
    }

    /// A first word that is neither a child nor an item is a crate. See [`resolve`](Self::resolve).
    fn resolve_import(&self, at: &[String], import: &[String], depth: usize) -> Option<ModulePath> {
        match import.first()?.as_str() {
            "crate" | "self" | "super" => self.resolve(at, import, depth + 1),
            first => {
                let module = self.modules.get(at)?;
                if module.children.contains(first) {
                    let mut path = vec!["self".to_owned()];
                    path.extend_from_slice(import);
                    return self.resolve(at, &path, depth + 1);
                }
                None
            }
        }
    }
}

struct PathCollector<'a> {
    into: &'a mut Vec<(Vec<String>, usize)>,
}

impl PathCollector<'_> {
    fn words(&mut self, tokens: &[Token<'_>]) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for (index, token) in tokens.iter().enumerate() {
            match &token.kind {
                // A lone name is reported where it is imported.
                TokenKind::Word("use") if tokens.get(index + 1).is_some_and(|next| !next.is_mark('<')) => {
                    let leaves = rust_tokens::used(&tokens[index + 1..]).into_iter();
                    self.into.extend(leaves.map(|(written, _)| (written, token.line)));
                }
                TokenKind::Word(word) => {
                    if colons < 2 {
                        self.end(&mut path, line);
                    }
                    if path.is_empty() {
                        line = token.line;
                    }
                    path.push((*word).to_owned());
                    colons = 0;
                    continue;
                }
                TokenKind::Mark(':') if !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenKind::Group(_, inside) => self.words(inside),
                _ => {}
            }
            self.end(&mut path, line);
            colons = 0;
        }
        self.end(&mut path, line);
    }

    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        if path.len() > 1 {
            self.into.push((std::mem::take(path), line));
        }
        path.clear();
    }
}

fn module_name(item: &Item<'_, '_>) -> String {
    item.body[1].word().expect("a module has a name").to_owned()
}

fn defined_name(item: &Item<'_, '_>) -> Option<String> {
    let name = match item.body[0].word()? {
        "const" | "static" | "enum" | "fn" | "struct" | "trait" | "type" | "union" => {
            item.body[1..].iter().find(|token| !token.is_word("mut"))
        }
        "macro_rules" => item.body.get(2),
        _ => None,
    };
    name?.word().map(str::to_owned)
}

/// `cfg(test)`, alone or within `all(…)`.
fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let mut words = Vec::new();
    rust_tokens::words(attribute, &mut words);
    words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not")
}

fn path_attribute(attribute: &[Token<'_>]) -> Option<String> {
    match attribute {
        [name, _, Token { kind: TokenKind::Literal(text), .. }] if name.is_word("path") => {
            Some(text.trim_matches('"').to_owned())
        }
        _ => None,
    }
}
