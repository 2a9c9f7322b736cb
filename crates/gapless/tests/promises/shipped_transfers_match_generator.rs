#[path = "../../data/transfers.rs"]
mod transfers;

#[test]
fn file_equals_generator_output() {
    let mut made = Vec::new();
    transfers::write(10_000, &mut made).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/transfers.csv");
    let shipped = std::fs::read(path).unwrap();
    let difference = made.iter().zip(&shipped).position(|(made, shipped)| made != shipped);
    assert_eq!(difference, None, "they differ first at this byte; make the file again");
    assert_eq!(made.len(), shipped.len());
    assert_eq!(made.iter().filter(|byte| **byte == b'\n').count(), 10_000);
}
