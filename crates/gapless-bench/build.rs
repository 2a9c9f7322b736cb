//! Generates the canonical benchmark's message from its schema.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gapless_schema::generate::build("../gapless-schema/schemas/car.xml")?;
    Ok(())
}
