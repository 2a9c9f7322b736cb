//! `prost` is an independent implementation.

use gapless_schema::{Decode as _, DecodeError, Encode, EncodeError, Protobuf, ProtobufObject};
use gapless_schema_tests::car::*;
use gapless_schema_tests::numbers;
use gapless_schema_tests::samples::reference;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct ProstCar {
    #[prost(sint32, optional, tag = "1")]
    serial_number: Option<i32>,
    #[prost(sint32, optional, tag = "2")]
    model_year: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    available: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    code: Option<i32>,
    #[prost(string, optional, tag = "5")]
    vehicle_code: Option<String>,
    #[prost(message, optional, tag = "6")]
    engine: Option<ProstEngine>,
    #[prost(sint32, repeated, tag = "7")]
    some_numbers: Vec<i32>,
    #[prost(int32, repeated, tag = "8")]
    extras: Vec<i32>,
    #[prost(message, repeated, tag = "9")]
    fuel_figure: Vec<ProstFigure>,
    #[prost(message, repeated, tag = "10")]
    performance_figure: Vec<ProstPerformance>,
    #[prost(string, tag = "11")]
    manufacturer: String,
    #[prost(string, tag = "12")]
    model: String,
}

#[derive(Clone, PartialEq, Message)]
struct ProstEngine {
    #[prost(sint32, optional, tag = "1")]
    capacity: Option<i32>,
    #[prost(sint32, optional, tag = "2")]
    num_cylinders: Option<i32>,
    #[prost(sint32, optional, tag = "3")]
    max_rpm: Option<i32>,
    #[prost(string, optional, tag = "4")]
    manufacturer_code: Option<String>,
    #[prost(string, optional, tag = "5")]
    fuel: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ProstFigure {
    #[prost(sint32, optional, tag = "1")]
    whole: Option<i32>,
    #[prost(float, optional, tag = "2")]
    part: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct ProstPerformance {
    #[prost(sint32, optional, tag = "1")]
    octane_rating: Option<i32>,
    #[prost(message, repeated, tag = "2")]
    acceleration: Vec<ProstFigure>,
}

fn prost_car() -> ProstCar {
    let figures = |values: &[(i32, f32)]| {
        values.iter().map(|(whole, part)| ProstFigure { whole: Some(*whole), part: Some(*part) }).collect()
    };
    let performance =
        |octane, values: &[(i32, f32)]| ProstPerformance { octane_rating: Some(octane), acceleration: figures(values) };
    ProstCar {
        serial_number: Some(12_345),
        model_year: Some(2005),
        available: Some(1),
        code: Some(65),
        vehicle_code: Some("abcdef".into()),
        engine: Some(ProstEngine {
            capacity: Some(4200),
            num_cylinders: Some(8),
            max_rpm: None,
            manufacturer_code: Some("abc".into()),
            fuel: None,
        }),
        some_numbers: vec![0, 1, 2, 3, 4],
        extras: vec![1, 0],
        fuel_figure: figures(&[(30, 35.9), (55, 49.0), (75, 40.0)]),
        performance_figure: vec![
            performance(95, &[(30, 4.0), (60, 7.5), (100, 12.2)]),
            performance(99, &[(30, 3.8), (60, 7.1), (100, 11.8)]),
        ],
        manufacturer: "MANUFACTURER".into(),
        model: "MODEL".into(),
    }
}

#[test]
fn object_equals_prost() {
    let mut buffer = [0; 512];
    let length = Protobuf(reference()).encode(&mut buffer).unwrap();
    assert_eq!(buffer[..length], prost_car().encode_to_vec());
    assert_eq!(ProstCar::decode(&buffer[..length]).unwrap(), prost_car());
    assert_eq!(Protobuf::<Car>::decode(&prost_car().encode_to_vec()).unwrap(), reference());
}

#[test]
fn empty_message_is_short() {
    let mut buffer = [0; 16];
    let length = Protobuf(Car::default()).encode(&mut buffer).unwrap();
    assert_eq!(buffer[..length], [6 << 3 | 2, 0], "an engine without fields");
    assert_eq!(Protobuf::<Car>::decode(&[]).unwrap(), Car::default());
}

#[test]
fn streaming_writes_the_same_bytes() {
    let mut buffer = [0; 512];
    let mut car = CarProtobufEncoder::new(&mut buffer);
    car.serial_number(12_345).model_year(2005).available(Availability::T).code(Code::A).vehicle_code("abcdef");
    car.engine(|engine| {
        engine.capacity(4200).num_cylinders(8).manufacturer_code("abc");
    });
    car.some_numbers(0..5).extras([Extra::SportsPack, Extra::SunRoof]);
    for (speed, mpg) in [(30, 35.9), (55, 49.0), (75, 40.0)] {
        car.fuel_figure(|figure| {
            figure.speed(speed).mpg(mpg);
        });
    }
    for (octane, seconds) in [(95, [4.0, 7.5, 12.2]), (99, [3.8, 7.1, 11.8])] {
        car.performance_figure(|figure| {
            figure.octane_rating(octane);
            for (mph, seconds) in [30, 60, 100].into_iter().zip(seconds) {
                figure.acceleration(|acceleration| {
                    acceleration.mph(mph).seconds(seconds);
                });
            }
        });
    }
    car.manufacturer("MANUFACTURER").model("MODEL");
    let length = car.finish().unwrap();
    assert_eq!(buffer[..length], prost_car().encode_to_vec());
}

#[test]
fn packed_unpacked_and_unknown_fields() {
    // someNumbers as two unpacked values, one packed pair, and fields 100 (varint), 101 (bytes), 102 and 103 (fixed).
    let payload = [
        [7 << 3, 2].as_slice(),
        &[0xa0, 6, 1],
        &[7 << 3, 3],
        &[0xaa, 6, 2, 9, 9],
        &[7 << 3 | 2, 2, 4, 5],
        &[0xb5, 6, 1, 2, 3, 4],
        &[0xb9, 6, 1, 2, 3, 4, 5, 6, 7, 8],
    ]
    .concat();
    assert_eq!(Car::from_protobuf(&payload).unwrap().some_numbers, [1, -2, 2, -3]);
}

#[test]
fn errors_are_named_with_their_place() {
    let problem = |payload: &[u8]| match Car::from_protobuf(payload).unwrap_err() {
        DecodeError::Protobuf { field, position, problem } => (field, position, problem),
        other => panic!("{other}"),
    };
    assert_eq!(problem(&[0]), ("Car", 0, "the field number is outside of 1..=536870911"));
    assert_eq!(problem(&[8, 2, 16, 0x80]), ("Car.modelYear", 3, "the varint is cut short"));
    assert_eq!(problem(&[16, 0x80, 0x80, 8]), ("Car.modelYear", 1, "the number is outside of the range of its type"));
    assert_eq!(problem(&[10, 0]), ("Car.serialNumber", 1, "the wire type is not that of the field"));
    assert_eq!(problem(&[0xa3, 6]), ("Car", 2, "the wire type of an unknown field is not 0, 1, 2 or 5"));
    assert_eq!(
        problem(&[[8].as_slice(), &[0xff; 11]].concat()),
        ("Car.serialNumber", 1, "the varint has more than 64 bits")
    );
    let nested = problem(&[6 << 3 | 2, 2, 8, 0x80]);
    assert_eq!(nested, ("Engine.capacity", 3, "the varint is cut short"), "positions are those of the payload");
    let cut = Car::from_protobuf(&[5 << 3 | 2, 9, b'a']).unwrap_err();
    assert_eq!(cut, DecodeError::Truncated { field: "Car.vehicleCode", position: 2, needed_bytes: 9, found_bytes: 1 });
    let text = Car::from_protobuf(&[5 << 3 | 2, 2, b'a', 0xff]).unwrap_err();
    assert_eq!(text, DecodeError::Text { field: "Car.vehicleCode", expected: "UTF-8", index: 1 });
}

#[test]
fn fixed_arrays_know_their_length() {
    let payload = |values: usize| [&[1 << 3 | 2, values as u8], vec![2; values].as_slice()].concat();
    assert_eq!(numbers::Arrays::from_protobuf(&payload(3)).unwrap().int8s, [1, 1, 1]);
    assert_eq!(numbers::Arrays::from_protobuf(&payload(1)).unwrap().int8s, [1, 0, 0]);
    assert!(numbers::Arrays::from_protobuf(&payload(4)).unwrap_err().to_string().contains("more than 3 values"));
    let bytes = numbers::Arrays::from_protobuf(&[2 << 3 | 2, 1, 0]).unwrap_err();
    assert!(bytes.to_string().contains("Arrays.uint8s") && bytes.to_string().contains("not 4 long"), "{bytes}");
}

#[test]
fn short_buffer_is_reported_at_the_end() {
    let mut buffer = [0; 20];
    let mut car = CarProtobufEncoder::new(&mut buffer);
    car.manufacturer("MANUFACTURER").model("MODEL").serial_number(1);
    assert_eq!(
        car.finish(),
        Err(EncodeError::Capacity { field: "Car", position: 0, needed_bytes: 23, found_bytes: 20 })
    );
}
