//! Generates one of the schemas' messages as an application's build script does.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gapless_schema::generate::build("../gapless-schema/schemas/car.xml")?;
    Ok(())
}
