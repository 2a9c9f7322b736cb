//! No two modules of a folder depend on each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use super::module_tree::{ModulePath, ModuleReference, ModuleTree, TREES};

#[test]
fn siblings_have_no_import_cycles() {
    let mut report = String::new();
    let mut cycles = 0;
    for (name, tree) in &*TREES {
        assert!(tree.len() > 0);
        for (parent, circle, namings) in sibling_cycles(tree) {
            cycles += 1;
            let place = std::iter::once(name.clone()).chain(parent).collect::<Vec<_>>().join("::");
            report += &format!("\n{place}: {}\n", circle.join(", "));
            let mut arrows: BTreeMap<_, Vec<&ModuleReference>> = BTreeMap::new();
            for naming in &namings {
                let depth = common_length(naming);
                arrows.entry((&naming.from[depth], &naming.to[depth])).or_default().push(naming);
            }
            for ((from, to), namings) in arrows {
                let named = namings.iter().map(|naming| naming.written.last().map_or("", String::as_str));
                let named = named.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
                report += &format!("    {from} names {to} {} times: {named}, {}\n", namings.len(), namings[0].place);
            }
        }
    }
    assert!(cycles == 0, "{cycles} import cycles of modules:\n{report}");
}

fn common_length(naming: &ModuleReference) -> usize {
    naming.from.iter().zip(&naming.to).take_while(|(a, b)| a == b).count()
}

/// Parent, names in the cycle, references that close it.
fn sibling_cycles(tree: &ModuleTree) -> Vec<(ModulePath, Vec<String>, Vec<ModuleReference>)> {
    let mut arrows: BTreeMap<ModulePath, BTreeMap<(String, String), Vec<ModuleReference>>> = BTreeMap::new();
    for naming in tree.namings() {
        let common = common_length(&naming);
        if let (Some(from), Some(to)) = (naming.from.get(common), naming.to.get(common)) {
            let arrow = (from.clone(), to.clone());
            arrows.entry(naming.from[..common].to_vec()).or_default().entry(arrow).or_default().push(naming);
        }
    }
    let mut found = Vec::new();
    for (parent, arrows) in arrows {
        let mut left = arrows.keys().map(|(from, _)| from.clone()).collect::<BTreeSet<_>>();
        while let Some(start) = left.pop_first() {
            let reached = reachable_from(&arrows, &start);
            if !reached.contains(&start) {
                continue;
            }
            let circle = reached.iter().filter(|other| reachable_from(&arrows, other).contains(&start)).cloned();
            let circle = circle.collect::<Vec<_>>();
            left.retain(|name| !circle.contains(name));
            let inside = arrows.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
            let namings = inside.flat_map(|(_, namings)| namings.clone()).collect();
            found.push((parent.clone(), circle, namings));
        }
    }
    found
}

fn reachable_from(arrows: &BTreeMap<(String, String), Vec<ModuleReference>>, start: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start.to_owned()];
    while let Some(name) = next.pop() {
        for (from, to) in arrows.keys() {
            if *from == name && reached.insert(to.clone()) {
                next.push(to.clone());
            }
        }
    }
    reached
}

#[test]
fn import_cycle_is_found_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, text).expect("a file");
    };
    write("lib.rs", "mod a; mod b; mod c; pub use b::inner::Deep;");
    write("a.rs", "use crate::Deep; pub struct A(Deep);");
    write("b/mod.rs", "pub mod inner; pub fn f() -> u8 { crate::c::g() }");
    write("b/inner.rs", "pub struct Deep; #[cfg(test)] mod tests { use crate::a::A; }");
    write("c.rs", "pub fn g() -> u8 { vec![crate::a::A].len() as u8 }");
    let cycles = sibling_cycles(&ModuleTree::read(&folder.path().join("lib.rs")));
    let [(parent, circle, namings)] = &cycles[..] else { panic!("one cycle, not {}", cycles.len()) };
    assert_eq!((parent.len(), circle.join(" ")), (0, "a b c".to_owned()));
    assert_eq!(namings.len(), 3, "{namings:?}");
}
