//! SBE and protobuf objects as typed messages.

use gapless_message::{Message, version_of};
use gapless_schema::{Protobuf, Sbe};
use gapless_schema_tests::car::Car;
use gapless_schema_tests::samples;

#[test]
fn car_is_a_message_in_both_encodings() {
    let mut sbe = vec![9];
    Sbe(samples::reference()).encode(&mut sbe).unwrap();
    assert_eq!(&sbe[1..], samples::golden("car"));
    assert_eq!(Sbe::<Car>::decode(&sbe[1..]).unwrap(), Sbe(samples::reference()));

    let mut protobuf = Vec::new();
    Protobuf(samples::reference()).encode(&mut protobuf).unwrap();
    assert_eq!(Protobuf::<Car>::decode(&protobuf).unwrap(), Protobuf(samples::reference()));
}

#[test]
fn encodings_are_distinct_messages() {
    assert_eq!(Sbe::<Car>::shape(), "Car of SBE schema 1, message 1");
    assert_eq!(version_of::<Sbe<Car>>(Sbe::<Car>::fingerprint()), Some(1));
    assert_eq!(version_of::<Sbe<Car>>(Protobuf::<Car>::fingerprint()), None);
}

#[test]
fn invalid_payloads_are_errors() {
    let golden = samples::golden("car");
    for cut in 0..golden.len() {
        assert!(Sbe::<Car>::decode(&golden[..cut]).unwrap_err().to_string().starts_with("Car: "), "cut at {cut}");
    }
    let mut car = samples::reference();
    car.manufacturer = "x".repeat(70_000);
    let mut into = vec![1, 2];
    assert!(Sbe(car).encode(&mut into).is_err());
    assert_eq!(into, [1, 2], "what stood before is left, and nothing else");
}
