//! The committed sources under `tests/generated/` are what the generator makes of `schemas/`.
//!
//! They are committed so that other tests can include them, and so that a change of the generator shows what it
//! changes. Refresh them with `GAPLESS_REFRESH=1 cargo test -p gapless-schema --test promises generated_sources`.

use std::path::{Path, PathBuf};

use gapless_schema::generate::Generator;

#[test]
fn committed_sources_are_what_the_generator_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let refresh = std::env::var_os("GAPLESS_REFRESH").is_some();
    let mut stale = Vec::new();
    let mut compare = |path: PathBuf, text: &str| {
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        if committed != text {
            if refresh {
                std::fs::write(&path, text).unwrap();
            }
            stale.push(path);
        }
    };
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("schemas")).unwrap() {
        let schema = entry.unwrap().path();
        let stem = schema.file_stem().unwrap().to_str().unwrap().to_owned();
        if stem.ends_with("-types") {
            continue; // Included by another one.
        }
        let generated = Generator::new().schema_file(&schema).generate().unwrap();
        compare(root.join("tests/generated").join(format!("{stem}.rs")), &generated.rust);
        compare(root.join("tests/generated").join(format!("{stem}.proto")), &generated.proto);
        count += 1;
    }
    assert!(count > 0, "no schemas found");
    assert!(refresh || stale.is_empty(), "not current, refresh them with GAPLESS_REFRESH=1: {stale:?}");
}
