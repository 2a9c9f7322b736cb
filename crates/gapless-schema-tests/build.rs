//! Generates the messages of every test schema, as an application's build script does.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new("../gapless-schema/schemas");
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder)? {
        let schema = entry?.path();
        // What ends with `-types` is included by another schema.
        if schema.file_stem().is_some_and(|stem| !stem.to_string_lossy().ends_with("-types")) {
            gapless_schema::generate::build(&schema)?;
        }
    }
    Ok(())
}
