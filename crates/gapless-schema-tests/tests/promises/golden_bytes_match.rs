use std::fmt::Debug;

use gapless_schema::{Decode, Encode, ProtobufObject, Sbe, SbeObject};
use gapless_schema_tests::samples::{SampleCheck, for_each_sample, golden, golden_folder};
use gapless_schema_tests::{car, extension_v0, extension_v2, numbers, truck};

struct Golden(usize);

impl SampleCheck for Golden {
    fn check<T: SbeObject + ProtobufObject + PartialEq + Debug + Clone>(&mut self, name: &str, object: T) {
        let bytes = golden(name);
        assert_eq!(Sbe::<T>::decode(&bytes).as_ref(), Ok(&object), "{name} is read");
        // Earlier content of the buffer must not remain visible.
        let mut buffer = vec![0xa5; bytes.len() + 3];
        let object = Sbe(object);
        assert_eq!(object.encode(&mut buffer), Ok(bytes.len()), "{name} is written");
        assert_eq!(buffer[..bytes.len()], bytes, "{name} is written as the official encoder does");
        assert_eq!(object.encoded_length(), bytes.len(), "{name} knows its length");
        self.0 += 1;
    }
}

#[test]
fn golden_messages_round_trip() {
    let mut check = Golden(0);
    for_each_sample(&mut check);
    let files = std::fs::read_dir(golden_folder()).unwrap().map(|entry| entry.unwrap().path());
    let count = files.filter(|path| path.extension().is_some_and(|extension| extension == "hex")).count();
    assert_eq!(check.0, count, "every golden file is used");
}

#[test]
fn direct_car_equals_golden_bytes() {
    use car::*;
    let mut buffer = [0xa5; 512];
    let mut car = CarEncoder::new(&mut buffer).unwrap();
    car.serial_number(12_345).model_year(2005).available(Availability::T).code(Code::A).vehicle_code(b"abcdef");
    car.engine().capacity(4200).num_cylinders(8).manufacturer_code_str("abc").unwrap();
    let mut numbers = car.some_numbers().unwrap();
    for number in 0..5 {
        numbers.entry().unwrap().value(number);
    }
    let mut extras = car.extras().unwrap();
    extras.entry().unwrap().value(Extra::SportsPack);
    extras.entry().unwrap().value(Extra::SunRoof);
    let mut figures = car.fuel_figure().unwrap();
    for (speed, mpg) in [(30, 35.9), (55, 49.0), (75, 40.0)] {
        figures.entry().unwrap().speed(speed).mpg_or_null(Some(mpg));
    }
    let mut figures = car.performance_figure().unwrap();
    for (octane, seconds) in [(95, [4.0, 7.5, 12.2]), (99, [3.8, 7.1, 11.8])] {
        let mut figure = figures.entry().unwrap();
        figure.octane_rating(octane);
        let mut acceleration = figure.acceleration().unwrap();
        for (mph, seconds) in [30, 60, 100].into_iter().zip(seconds) {
            acceleration.entry().unwrap().mph(mph).seconds(seconds);
        }
    }
    car.manufacturer("MANUFACTURER").unwrap().model(b"MODEL").unwrap();
    let length = car.finish().unwrap();
    assert_eq!(buffer[..length], golden("car"));
}

#[test]
fn golden_car_is_read_in_any_order() {
    let bytes = golden("car");
    let car = car::CarDecoder::parse(&bytes).unwrap();
    assert_eq!((car.model(), car.manufacturer_str()), (&b"MODEL"[..], Ok("MANUFACTURER")));
    let seconds = |index| {
        let figure = car.performance_figure().nth(index).unwrap();
        figure.acceleration().map(|entry| entry.seconds().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((seconds(1), seconds(0)), (vec![3.8, 7.1, 11.8], vec![4.0, 7.5, 12.2]));
    assert_eq!(car.some_numbers().len(), 5);
    assert_eq!(car.some_numbers().map(|entry| entry.value()).sum::<i32>(), 10);
    assert_eq!((car.vehicle_code(), car.vehicle_code_str()), (Some(b"abcdef"), Ok(Some("abcdef"))));
    let engine = car.engine();
    assert_eq!((engine.max_rpm(), engine.fuel(), engine.capacity()), (None, None, Some(4200)));
    assert_eq!(car.serial_number(), Some(12_345));
}

#[test]
fn constants_and_ranges_match_schema() {
    let bytes = golden("truck");
    let decoder = truck::TruckDecoder::parse(&bytes).unwrap();
    assert_eq!((decoder.discounted_model(), decoder.shown_model()), (truck::Model::C, truck::Model::B));
    assert_eq!((decoder.engine().max_rpm(), decoder.engine().fuel()), (9000, "Diesel"));
    assert_eq!((decoder.price().unwrap().exponent(), decoder.list_price().is_none()), (-2, true));
    assert_eq!((truck::TruckPerformanceFiguresDecoder::OCTANE_RATING_MIN, truck::Engine::MAX_RPM), (90, 9000));
    let bytes = golden("numbers-choices");
    let decoder = numbers::ChoicesDecoder::parse(&bytes).unwrap();
    assert_eq!((decoder.letter_constant(), decoder.text_constant()), (b'g', "Gapless"));
    assert_eq!((decoder.int16_constant(), decoder.uint64_constant()), (-42, 9_000_000_000));
    assert_eq!((decoder.double_constant(), decoder.side_constant()), (2.5, numbers::Side::Sell));
    let bytes = golden("numbers-padded");
    let decoder = numbers::PaddedDecoder::parse(&bytes).unwrap();
    assert!(decoder.entries().all(|entry| entry.kind() == b'g'));
}

#[test]
fn new_reader_reads_old_writer() {
    let bytes = golden("extension-v0-order");
    let order = Sbe::<extension_v2::Order>::decode(&bytes).unwrap();
    let leg = |ratio, accounts: &[u32]| extension_v2::OrderLegs {
        ratio,
        price: None,
        allocations: accounts
            .iter()
            .map(|account| extension_v2::OrderLegsAllocations { account: *account, share: None })
            .collect(),
    };
    let expected = extension_v2::Order {
        order_id: 77,
        side: extension_v2::Side::Sell,
        venue: extension_v2::Venue { country: 49, segment: None },
        legs: vec![leg(1, &[100]), leg(2, &[200, 201])],
        ..Default::default()
    };
    assert_eq!(order, expected);
    let direct = extension_v2::OrderDecoder::parse(&bytes).unwrap();
    assert_eq!((direct.flags(), direct.limits().is_none(), direct.parties().len()), (None, true, 0));
    let note = Sbe::<extension_v2::Note>::decode(&golden("extension-v0-note")).unwrap();
    assert_eq!(note, extension_v2::Note { at: 5, text: "old".into(), author: String::new() });
}

#[test]
fn old_reader_reads_new_writer() {
    let order = Sbe::<extension_v0::Order>::decode(&golden("extension-v2-order")).unwrap();
    let allocation = |account| extension_v0::OrderLegsAllocations { account };
    assert_eq!((order.order_id, order.venue.country), (77, 49));
    assert_eq!(order.side, extension_v0::Side::Unknown(b'C'), "a value that came later");
    assert_eq!(order.legs, [extension_v0::OrderLegs { ratio: 1, allocations: vec![allocation(100), allocation(101)] }]);
    let note = Sbe::<extension_v0::Note>::decode(&golden("extension-v2-note")).unwrap();
    assert_eq!(note, extension_v0::Note { at: 6, text: "new".into() });
}
