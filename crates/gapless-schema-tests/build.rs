use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new("../gapless-schema/schemas");
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder)? {
        let schema = entry?.path();
        // Included by other schemas.
        if schema.file_stem().is_some_and(|stem| !stem.to_string_lossy().ends_with("-types")) {
            gapless_schema::generate::build(&schema)?;
        }
    }
    Ok(())
}
