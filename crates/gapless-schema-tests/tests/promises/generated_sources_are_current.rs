//! A change of the generator shows its effect here. Refresh with `GAPLESS_REFRESH=1 cargo test -p gapless-schema-tests
//! --test promises generated_sources`.

use gapless_schema_tests::{CAR_SOURCES, samples};

#[test]
fn committed_sources_are_current() {
    let refresh = std::env::var_os("GAPLESS_REFRESH").is_some();
    let mut stale = Vec::new();
    for (name, generated) in CAR_SOURCES {
        let path = samples::golden_folder().join(name);
        if std::fs::read_to_string(&path).unwrap_or_default() != generated {
            if refresh {
                std::fs::write(&path, generated).unwrap();
            }
            stale.push(path);
        }
    }
    assert!(refresh || stale.is_empty(), "not current, refresh them with GAPLESS_REFRESH=1: {stale:?}");
}
