//! The values of `gapless-schema/golden/GoldenWriter.java`, and the golden bytes.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use crate::{big_endian, car, extension_v0, extension_v2, numbers, truck};
use gapless_schema::{ProtobufObject, SbeObject};

include!("../../gapless-schema/golden/reference_car.rs");

pub trait SampleCheck {
    fn check<T: SbeObject + ProtobufObject + PartialEq + Debug + Clone>(&mut self, golden: &str, object: T);
}

pub fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gapless-schema/golden")
}

pub fn golden(name: &str) -> Vec<u8> {
    let path = golden_folder().join(format!("{name}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("golden files are hexadecimal")).collect()
}

pub fn for_each_sample(check: &mut impl SampleCheck) {
    check.check("car", reference_car());
    check.check("car-empty", car::Car::default());
    check.check("truck", truck());
    check.check("numbers-scalars", scalars());
    check.check("numbers-arrays", arrays());
    check.check("numbers-choices", choices());
    check.check("numbers-padded", padded());
    check.check("numbers-keywords", keywords());
    check.check("numbers-empty", numbers::Empty::default());
    check.check("big-endian", big());
    check.check("extension-v0-order", order_v0());
    check.check("extension-v0-note", extension_v0::Note { at: 5, text: "old".into() });
    check.check("extension-v2-order", order_v2());
    check.check("extension-v2-note", extension_v2::Note { at: 6, text: "new".into(), author: "me".into() });
    check.check("extension-v2-late", extension_v2::Late { first: 1, second: Some(2) });
}

pub fn reference() -> car::Car {
    reference_car()
}

pub fn truck() -> truck::Truck {
    use truck::*;
    let fuel = |speed, mpg, text: &str| TruckFuelFigures { speed, mpg, usage_description: text.into() };
    Truck {
        serial_number: 1_234_567_890_123,
        model_year: 2013,
        available: BooleanType::T,
        code: Model::A,
        axle_loads: [7000, 8000, 4_000_000_000, 0],
        vehicle_code: "ab12".into(),
        extras: OptionalExtras::default().with_sports_pack(true).with_cruise_control(true),
        engine: Engine {
            capacity: 12_000,
            num_cylinders: 6,
            manufacturer_code: "123".into(),
            efficiency: 35,
            booster_enabled: BooleanType::T,
            booster: Booster { boost_type: BoostType::Nitrous, horse_power: 200 },
            sump: Sump { oil: None, alarms: Alarms::default().with_low(true).with_hot(true) },
        },
        price: Some(Price { mantissa: -9_999_999 }),
        list_price: None,
        fuel_figures: vec![fuel(30, 35.9, "Urban Cycle"), fuel(55, 49.0, ""), fuel(75, 40.0, "Highway Cycle")],
        performance_figures: vec![
            TruckPerformanceFigures {
                octane_rating: 95,
                acceleration: vec![
                    TruckPerformanceFiguresAcceleration { mph: 30, seconds: 4.0 },
                    TruckPerformanceFiguresAcceleration { mph: 60, seconds: 7.5 },
                ],
            },
            TruckPerformanceFigures { octane_rating: 99, acceleration: vec![] },
        ],
        manufacturer: "Grüße".into(),
        model: "Café".into(),
        activation_code: vec![0, 1, 0xff],
    }
}

pub fn scalars() -> numbers::Scalars {
    numbers::Scalars {
        a_char: b'x',
        an_int8: -1,
        an_int16: -2,
        an_int32: -3,
        an_int64: -4,
        a_uint8: 250,
        a_uint16: 65_000,
        a_uint32: 4_000_000_000,
        a_uint64: u64::MAX - 1,
        a_float: 1.5,
        a_double: -2.25,
        never_null: -1,
        temperature: -40.5,
        sending_time: 1_700_000_000_000_000_000,
        ..Default::default()
    }
}

pub fn arrays() -> numbers::Arrays {
    numbers::Arrays {
        int8s: [-1, 0, 1],
        uint8s: [1, 2, 254, 255],
        int16s: [-300, 300],
        uint16s: [1, 65_535],
        int32s: [-70_000, 70_000],
        uint32s: [1, u32::MAX],
        int64s: [-5_000_000_000, 5_000_000_000],
        uint64s: [1, u64::MAX],
        floats: [0.5, -0.5, 1e10],
        doubles: [std::f64::consts::PI, -1e300],
        no_int16s: None,
        some_int16s: Some([i16::MIN, 7]),
        no_floats: None,
        no_bytes: None,
        latin: "été".into(),
        utf8: "héllo".into(),
        utf8_bytes: "héllo".into(),
        no_text: None,
    }
}

pub fn choices() -> numbers::Choices {
    use numbers::*;
    Choices {
        letter: Letter::Zulu,
        maybe_letter: None,
        side: Side::SellShort,
        maybe_side: None,
        other_side: Some(Side::Cross),
        wide: Wide::Many,
        bits8: Bits8::default().with_first(true).with_last(true),
        bits16: Bits16::from_raw(1 << 15),
        bits32: Bits32::default().with_first(true).with_last(true),
        #[allow(deprecated)]
        bits64: Bits64::default().with_last(true),
        sides: vec![Side::Buy, Side::Sell],
        wholes: vec![1, u64::MAX - 1],
        parts: vec![],
    }
}

pub fn padded() -> numbers::Padded {
    use numbers::*;
    Padded {
        near: 1,
        far: 2,
        spaced: Spaced { first: 3, second: 4, third: 5 },
        entries: vec![PaddedEntries { here: 6 }, PaddedEntries { here: 7 }],
    }
}

pub fn keywords() -> numbers::Keywords {
    numbers::Keywords { type_: 1, match_: 2, self_: 3, parse_: 4, next_: 5, foo_bar: 6, foo_bar_: 7, result: 8 }
}

pub fn big() -> big_endian::Big {
    use big_endian::*;
    Big {
        whole: 0x0102_0304_0506_0708,
        part: 1.5,
        shorts: [1, -2, 3],
        level: Level::High,
        marks: Marks::default().with_one(true).with_twenty(true),
        point: Point { x: -5, y: None },
        maybe: None,
        outer: vec![
            BigOuter {
                id: 1,
                middle: vec![BigOuterMiddle {
                    id: 2,
                    inner: vec![
                        BigOuterMiddleInner { id: 3, note: vec![1, 2] },
                        BigOuterMiddleInner { id: 4, note: vec![] },
                    ],
                    note: "middle".into(),
                }],
                note: "outer".into(),
            },
            BigOuter { id: 5, middle: vec![], note: String::new() },
        ],
        plain: [1, -1, 2].map(|id| BigPlain { id }).to_vec(),
        small: vec![9, 8, 7],
        middle: "mittel".into(),
        wide: "weit".into(),
    }
}

pub fn order_v0() -> extension_v0::Order {
    use extension_v0::*;
    let allocation = |account| OrderLegsAllocations { account };
    Order {
        order_id: 77,
        side: Side::Sell,
        venue: Venue { country: 49 },
        legs: vec![
            OrderLegs { ratio: 1, allocations: vec![allocation(100)] },
            OrderLegs { ratio: 2, allocations: vec![allocation(200), allocation(201)] },
        ],
    }
}

pub fn order_v2() -> extension_v2::Order {
    use extension_v2::*;
    Order {
        order_id: 77,
        side: Side::Cross,
        venue: Venue { country: 49, segment: Some(7) },
        quantity: Some(1000),
        flags: Flags::default().with_hidden(true).with_post_only(true),
        other_side: None,
        limits: Some(Limits { low: -1, high: 1 }),
        levels: Some([3, 4]),
        text: Some("text".into()),
        legs: vec![OrderLegs {
            ratio: 1,
            price: Some(2.5),
            allocations: vec![
                OrderLegsAllocations { account: 100, share: Some(60) },
                OrderLegsAllocations { account: 101, share: Some(40) },
            ],
        }],
        parties: vec![OrderParties { role: 3, id: Some(9) }],
        comment: "new".into(),
    }
}
