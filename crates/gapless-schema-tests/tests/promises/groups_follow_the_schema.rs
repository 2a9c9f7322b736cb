use gapless_schema::{Decode, DecodeError, Direct, Encode, EncodeError, Sbe, SbeObject};
use gapless_schema_tests::big_endian::{Big, BigEncoder};
use gapless_schema_tests::car::*;
use gapless_schema_tests::samples::{self, golden, reference};
use gapless_schema_tests::{extension_v2, numbers, truck};

#[test]
fn skipped_groups_and_data_are_empty() {
    let mut buffer = [0xa5; 256];
    let mut car = CarEncoder::new(&mut buffer).unwrap();
    car.serial_number(5);
    car.fuel_figure().unwrap().entry().unwrap().speed(1);
    car.model("M").unwrap();
    let length = car.finish().unwrap();
    let mut expected = Car { serial_number: Some(5), model: "M".into(), ..Car::default() };
    expected.fuel_figure.push(CarFuelFigure { speed: Some(1), mpg: None });
    assert_eq!(Sbe::<Car>::decode(&buffer[..length]), Ok(expected));
}

#[test]
fn later_writes_complete_entries() {
    let mut buffer = [0xa5; 512];
    let mut big = <BigEncoder<'_> as Direct>::encoder(&mut buffer).unwrap();
    let mut outer = big.outer().unwrap();
    let mut entry = outer.entry().unwrap();
    entry.id(1);
    let mut middle = entry.middle().unwrap();
    middle.entry().unwrap().id(2).inner().unwrap().entry().unwrap().id(3);
    middle.entry().unwrap().id(4);
    outer.entry().unwrap().id(5);
    big.plain().unwrap().entry().unwrap().id(6);
    let length = <BigEncoder<'_> as Direct>::finish(big).unwrap();
    let big = Big::from_sbe(&buffer[..length]).unwrap();
    assert_eq!(big.outer.iter().map(|entry| entry.id).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(big.outer[0].middle.iter().map(|entry| entry.id).collect::<Vec<_>>(), [2, 4]);
    assert_eq!((big.outer[0].middle[0].inner[0].id, big.plain[0].id), (3, 6));
}

#[test]
fn open_entry_is_completed_at_the_end() {
    let mut buffer = [0xa5; 512];
    let mut big = BigEncoder::new(&mut buffer).unwrap();
    let mut outer = big.outer().unwrap();
    outer.entry().unwrap().middle().unwrap().entry().unwrap().inner().unwrap().entry().unwrap().id(9);
    let length = big.finish().unwrap();
    assert_eq!(Big::from_sbe(&buffer[..length]).unwrap().outer[0].middle[0].inner[0].id, 9);
}

#[test]
fn late_groups_and_data_are_refused() {
    let mut buffer = [0; 512];
    let mut car = CarEncoder::new(&mut buffer).unwrap();
    car.extras().unwrap();
    assert_eq!(car.some_numbers().err(), Some(EncodeError::Order { field: "Car.someNumbers" }));
    assert_eq!(car.extras().err(), Some(EncodeError::Order { field: "Car.extras" }));
    car.model("MODEL").unwrap();
    assert_eq!(car.manufacturer("M").err(), Some(EncodeError::Order { field: "Car.manufacturer" }));
    assert_eq!(car.model("M").err(), Some(EncodeError::Order { field: "Car.model" }));
    let length = car.finish().unwrap();
    assert_eq!(Car::from_sbe(&buffer[..length]).unwrap().model, "MODEL");
}

#[test]
fn full_group_or_long_data_is_refused() {
    let mut buffer = vec![0; 1 << 20];
    let mut choices = numbers::ChoicesEncoder::new(&mut buffer).unwrap();
    let mut sides = choices.sides().unwrap();
    for _ in 0..500 {
        sides.entry().unwrap();
    }
    let full = EncodeError::Length { field: "Choices.sides", found: 501, limit: 500 };
    assert_eq!(sides.entry().err(), Some(full));
    let length = choices.finish().unwrap();
    assert_eq!(numbers::Choices::from_sbe(&buffer[..length]).unwrap().sides.len(), 500);

    let mut truck = truck::TruckEncoder::new(&mut buffer).unwrap();
    let long = EncodeError::Length { field: "Truck.activationCode", found: 4097, limit: 4096 };
    assert_eq!(truck.activation_code([0; 4097]).err(), Some(long));
    truck.activation_code([1; 4096]).unwrap();
    let length = truck.finish().unwrap();
    assert_eq!(truck::Truck::from_sbe(&buffer[..length]).unwrap().activation_code, [1; 4096]);
}

#[test]
fn objects_refuse_ambiguous_values() {
    let mut buffer = [0; 1024];
    let mut refuse = |car: Car| Sbe(car).encode(&mut buffer).unwrap_err().to_string();
    let year = refuse(Car { model_year: Some(i16::MIN), ..reference() });
    assert_eq!(year, "Car.modelYear: the value is outside of the range of its type without the null value");
    let text = refuse(Car { vehicle_code: Some("abcdefg".into()), ..reference() });
    assert_eq!(text, "Car.vehicleCode: text of 7 bytes does not fit into 6 bytes of text without NUL");
    let nul = refuse(Car { vehicle_code: Some("a\0c".into()), ..reference() });
    assert!(nul.starts_with("Car.vehicleCode: text of 3 bytes"), "{nul}");
    let mut other = samples::truck();
    other.performance_figures[0].octane_rating = 111;
    let range = Sbe(other).encode(&mut buffer).unwrap_err();
    assert_eq!(range, EncodeError::Range { field: "Truck.performanceFigures.octaneRating", range: "90 to 110" });
    let mut other = samples::truck();
    other.model = "日本".into();
    let latin = Sbe(other).encode(&mut buffer).unwrap_err();
    assert!(matches!(latin, EncodeError::Text { field: "Truck.model", expected: "ISO-8859-1", .. }), "{latin}");
}

/// Text written before this check existed is still read.
#[test]
fn ascii_text_is_checked() {
    let mut buffer = [0; 1024];
    let expected = EncodeError::Text { field: "Car.vehicleCode", found_bytes: 4, limit_bytes: 4, expected: "US-ASCII" };
    let mut car = CarEncoder::new(&mut buffer).unwrap();
    assert_eq!(car.vehicle_code_str("Zoë").err(), Some(expected));
    car.vehicle_code_str("Zoe").unwrap();
    car.vehicle_code("Zoë\0\0".as_bytes().try_into().unwrap());
    let length = car.finish().unwrap();
    assert_eq!(CarDecoder::parse(&buffer[..length]).unwrap().vehicle_code_str(), Ok(Some("Zoë")));
    let object = Car::from_sbe(&buffer[..length]).unwrap();
    assert_eq!(object.vehicle_code.as_deref(), Some("Zoë"));
    assert_eq!(Sbe(object).encode(&mut buffer).err(), Some(expected));
}

/// On the wire an empty set does not differ from a missing one.
#[test]
fn absent_set_is_none_or_empty() {
    use gapless_schema_tests::{extension_v0, extension_v2};
    let mut buffer = [0; 1024];
    let length = extension_v0::OrderEncoder::new(&mut buffer).unwrap().finish().unwrap();
    let order = extension_v2::OrderDecoder::parse(&buffer[..length]).unwrap();
    assert_eq!((order.flags(), order.quantity()), (None, None));
    let object = extension_v2::Order::from_decoder(&order).unwrap();
    assert_eq!((object.flags, object.quantity), (extension_v2::Flags::default(), None));
}

#[test]
fn foreign_headers_are_refused() {
    let mut bytes = golden("car");
    bytes[2] = 9;
    assert_eq!(CarDecoder::parse(&bytes).unwrap_err(), DecodeError::Template { message: "Car", expected: 1, found: 9 });
    bytes[4] = 7;
    let error = CarDecoder::parse(&bytes).unwrap_err();
    assert_eq!(error, DecodeError::Schema { message: "Car", expected: 1, found: 7 });
    assert_eq!(error.to_string(), "Car: the header names schema 7, expected 1");
}

#[test]
fn wrong_lengths_are_noticed() {
    let mut bytes = golden("car");
    bytes[0] = 27;
    assert_eq!(
        CarDecoder::parse(&bytes).unwrap_err().to_string(),
        "Car at byte 8: block length 27 is below the 28 bytes of version 0"
    );
    let mut bytes = golden("car");
    bytes[38..40].copy_from_slice(&60_000u16.to_le_bytes());
    let total = bytes.len();
    assert_eq!(
        CarDecoder::parse(&bytes).unwrap_err(),
        DecodeError::Truncated {
            field: "Car.someNumbers",
            position: 40,
            needed_bytes: 240_000,
            found_bytes: total - 40
        }
    );
    bytes[36..38].copy_from_slice(&3u16.to_le_bytes());
    let short = CarDecoder::parse(&bytes).unwrap_err();
    assert_eq!(short.to_string(), "Car.someNumbers at byte 40: block length 3 is below the 4 bytes of version 0");
    let mut bytes = golden("extension-v2-order");
    bytes[0] = 13;
    let short = extension_v2::OrderDecoder::parse(&bytes).unwrap_err();
    assert!(short.to_string().contains("block length 13 is below the 35 bytes of version 2"), "{short}");
}

#[test]
fn longer_blocks_are_skipped() {
    let bytes = golden("car");
    let mut longer = bytes[..36].to_vec();
    longer[0] += 2;
    longer.extend([0xee; 2]);
    longer.extend([6, 0, 5, 0]);
    for entry in bytes[40..60].chunks(4) {
        longer.extend(entry);
        longer.extend([0xee; 2]);
    }
    longer.extend(&bytes[60..]);
    assert_eq!(Sbe::<Car>::decode(&longer), Ok(reference()));
}

#[test]
fn entries_without_bytes_are_limited() {
    // The fields of parties came with the group; a block length of zero is refused for them.
    let mut bytes = golden("extension-v2-late");
    assert!(extension_v2::LateDecoder::parse(&bytes).is_ok());
    bytes[0] = 0;
    assert!(matches!(extension_v2::LateDecoder::parse(&bytes), Err(DecodeError::BlockLength { needed_bytes: 2, .. })));
}
