//! The modules of one crate and which of them name which, read from its sources. Tests do not count; macros are read
//! as words.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::Visit;
use syn::{Attribute, Item, UseTree};

/// A module's path within its crate; the crate's root is empty.
pub type ModulePath = Vec<String>;

/// One module: what it defines, what it brings into scope and what it names.
#[derive(Default)]
struct Module {
    children: BTreeSet<String>,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    named: Vec<(Vec<String>, usize)>,
    file: PathBuf,
    /// Numbers of the lines of its file that hold code of this module.
    lines: BTreeSet<usize>,
}

/// One module names something of another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Naming {
    /// The module that names.
    pub from: ModulePath,
    /// Where the thing is defined.
    pub to: ModulePath,
    /// File and line.
    pub place: String,
    /// The path as it is written.
    pub written: Vec<String>,
}

/// All modules of one crate.
pub struct ModuleTree {
    modules: BTreeMap<ModulePath, Module>,
}

impl ModuleTree {
    /// Reads the modules below `root_file`, a `lib.rs` or `main.rs`.
    pub fn read(root_file: &Path) -> ModuleTree {
        let mut tree = ModuleTree { modules: BTreeMap::new() };
        let folder = root_file.parent().expect("a source file lies in a folder");
        tree.read_file(root_file, folder, Vec::new());
        tree
    }

    /// The names between modules, each resolved to the module that defines what is named.
    pub fn namings(&self) -> Vec<Naming> {
        let mut found = Vec::new();
        for (from, module) in &self.modules {
            for (written, line) in &module.named {
                if let Some(to) = self.resolve(from, written, 0)
                    && to != *from
                {
                    found.push(Naming {
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

    /// How many modules there are.
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// How many lines of code the modules have, without comments and empty lines.
    pub fn lines_of_code(&self) -> usize {
        let lines = self.modules.values().flat_map(|module| module.lines.iter().map(|line| (&module.file, line)));
        lines.collect::<BTreeSet<_>>().len()
    }

    fn read_file(&mut self, file: &Path, children_folder: &Path, path: ModulePath) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if parsed.attrs.iter().any(is_for_tests) {
            return;
        }
        self.read_items(parsed.items, file, children_folder, path);
    }

    fn read_items(&mut self, items: Vec<Item>, file: &Path, children_folder: &Path, path: ModulePath) {
        let mut module = Module { file: file.to_path_buf(), ..Module::default() };
        let mut children = Vec::new();
        for item in items {
            if attributes(&item).iter().any(is_for_tests) {
                continue;
            }
            if let Some(name) = defined_name(&item) {
                module.items.insert(name);
            }
            if !matches!(&item, Item::Mod(child) if child.content.is_some()) {
                note_lines(item.to_token_stream(), &mut module.lines);
            }
            if let Item::Use(used) = &item {
                let line = used.use_token.span.start().line;
                let mut leaves = Vec::new();
                flatten(&used.tree, &mut Vec::new(), &mut leaves);
                for (written, name) in leaves {
                    match name {
                        Some(name) => _ = module.imports.insert(name, written.clone()),
                        None => module.globs.push(written.clone()),
                    }
                    // What a module only hands on is no dependency of its own: its users' paths are followed through it.
                    if matches!(used.vis, syn::Visibility::Inherited) {
                        module.named.push((written, line));
                    }
                }
                continue;
            }
            match item {
                Item::Mod(child) => {
                    module.children.insert(child.ident.to_string());
                    children.push(child);
                }
                other => Names { into: &mut module.named }.visit_item(&other),
            }
        }
        self.modules.insert(path.clone(), module);
        for child in children {
            let name = child.ident.to_string();
            let mut child_path = path.clone();
            child_path.push(name.clone());
            let folder = children_folder.join(&name);
            match child.content {
                Some((_, items)) => self.read_items(items, file, &folder, child_path),
                None => {
                    let named_by_attribute = child.attrs.iter().find_map(path_attribute);
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

    /// The module that defines what `written` names in `from`; `None` for names of other crates and of locals.
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

    /// As [`resolve`](Self::resolve), for the path of a `use`: a first word that is neither a child nor an item is a crate.
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

/// Collects the paths that an item names.
struct Names<'a> {
    into: &'a mut Vec<(Vec<String>, usize)>,
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        let written = path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>();
        // A lone name is reported where it is imported.
        if written.len() > 1 && path.leading_colon.is_none() {
            self.into.push((written, line));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, used: &'ast syn::ItemUse) {
        let line = used.use_token.span.start().line;
        let mut leaves = Vec::new();
        flatten(&used.tree, &mut Vec::new(), &mut leaves);
        self.into.extend(leaves.into_iter().map(|(written, _)| (written, line)));
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.words(called.tokens.clone());
        syn::visit::visit_macro(self, called);
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
}

impl Names<'_> {
    /// The paths among the words of a macro's call.
    fn words(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(word) => {
                    if colons < 2 {
                        self.end(&mut path, line);
                    }
                    if path.is_empty() {
                        line = word.span().start().line;
                    }
                    path.push(word.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.words(group.stream()),
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

/// Notes the lines on which tokens stand; doc comments are tokens that do not count.
fn note_lines(tokens: TokenStream, into: &mut BTreeSet<usize>) {
    for token in tokens {
        match &token {
            TokenTree::Group(group) if is_doc(group) => {}
            TokenTree::Group(group) => {
                into.extend([group.span_open().start().line, group.span_close().end().line]);
                note_lines(group.stream(), into);
            }
            // The mark before an attribute stands on the line of the attribute.
            TokenTree::Punct(mark) if mark.as_char() == '#' => {}
            _ => into.extend(token.span().start().line..=token.span().end().line),
        }
    }
}

fn is_doc(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket && matches!(first, Some(TokenTree::Ident(word)) if word == "doc")
}

fn flatten(tree: &UseTree, before: &mut Vec<String>, into: &mut Vec<(Vec<String>, Option<String>)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, into);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => into.push((before.clone(), before.last().cloned())),
        UseTree::Name(name) => {
            let mut path = before.clone();
            path.push(name.ident.to_string());
            into.push((path, Some(name.ident.to_string())));
        }
        UseTree::Rename(renamed) => {
            let mut path = before.clone();
            if renamed.ident != "self" {
                path.push(renamed.ident.to_string());
            }
            into.push((path, Some(renamed.rename.to_string())));
        }
        UseTree::Glob(_) => into.push((before.clone(), None)),
        UseTree::Group(group) => {
            for part in &group.items {
                flatten(part, before, into);
            }
        }
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether `attribute` leaves its item out of what is shipped: `cfg(test)`, alone or within `all(…)`.
fn is_for_tests(attribute: &Attribute) -> bool {
    if !attribute.path().is_ident("cfg") {
        return false;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let words = list.tokens.to_string();
    words.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test") && !words.contains("not")
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        syn::Lit::Str(text) if pair.path.is_ident("path") => Some(text.value()),
        _ => None,
    }
}
