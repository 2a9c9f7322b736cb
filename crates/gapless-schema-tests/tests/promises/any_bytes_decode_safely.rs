#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use gapless_schema::{DecodeError, EncodeError, ProtobufObject, SbeObject};
use gapless_schema_tests::car;
use gapless_schema_tests::samples::{SampleCheck, for_each_sample, golden};
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Clone, Debug)]
struct ByteDamage {
    bytes: Vec<(Index, u8)>,
    length: Option<(Index, u8)>,
}

impl ByteDamage {
    fn of(&self, payload: &[u8]) -> Vec<u8> {
        let mut payload = payload.to_vec();
        let length = payload.len();
        for (index, byte) in &self.bytes {
            if length > 0 {
                payload[index.index(length)] = *byte;
            }
        }
        if let Some((index, filling)) = &self.length {
            payload.resize(index.index(payload.len() + 40), *filling);
        }
        payload
    }
}

fn damage() -> impl Strategy<Value = ByteDamage> {
    let byte = prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(1)];
    let bytes = proptest::collection::vec((any::<Index>(), byte), 0..6);
    let length = proptest::option::weighted(0.3, (any::<Index>(), any::<u8>()));
    (bytes, length).prop_map(|(bytes, length)| ByteDamage { bytes, length })
}

fn sbe<T: SbeObject>(object: &T) -> Result<Vec<u8>, EncodeError> {
    let mut buffer = vec![0xa5; object.sbe_length()];
    let length = object.to_sbe(&mut buffer)?;
    assert_eq!(length, buffer.len(), "the length is known before");
    Ok(buffer)
}

fn protobuf<T: ProtobufObject>(object: &T) -> Vec<u8> {
    let mut buffer = vec![0; object.protobuf_length()];
    let length = object.to_protobuf(&mut buffer).unwrap();
    assert_eq!(length, buffer.len(), "the length is known before");
    buffer
}

/// Compares bytes, because NaN is not equal to itself.
fn survives<T: SbeObject + ProtobufObject + Debug>(object: &T) -> Result<(), TestCaseError> {
    // A protobuf payload may hold values that SBE refuses: too long a text, a number out of range.
    let Ok(bytes) = sbe(object) else { return Ok(()) };
    let again = T::from_sbe(&bytes);
    prop_assert!(again.is_ok(), "{again:?} of {object:?}");
    // SBE has one NaN, null; protobuf carries any of them.
    let again = again.unwrap();
    if !format!("{object:?}").contains("NaN") {
        prop_assert_eq!(&sbe(&again).unwrap(), &bytes);
    }
    let bytes = sbe(&again).unwrap();
    prop_assert_eq!(&sbe(&T::from_sbe(&bytes).unwrap()).unwrap(), &bytes);
    let through = T::from_protobuf(&protobuf(&again));
    prop_assert!(through.is_ok(), "{through:?} of {object:?}");
    prop_assert_eq!(&sbe(&through.unwrap()).unwrap(), &bytes);
    Ok(())
}

struct DamagedCheck(ByteDamage);

impl SampleCheck for DamagedCheck {
    fn check<T: SbeObject + ProtobufObject + PartialEq + Debug + Clone>(&mut self, name: &str, object: T) {
        let run = || -> Result<(), TestCaseError> {
            if let Ok(read) = T::from_sbe(&self.0.of(&golden(name))) {
                survives(&read)?;
            }
            if let Ok(read) = T::from_protobuf(&self.0.of(&protobuf(&object))) {
                survives(&read)?;
                let bytes = protobuf(&read);
                let again = T::from_protobuf(&bytes);
                prop_assert!(again.is_ok(), "{again:?} of {read:?}");
                prop_assert_eq!(protobuf(&again.unwrap()), bytes);
            }
            Ok(())
        };
        run().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

struct UntouchedCheck;

impl SampleCheck for UntouchedCheck {
    fn check<T: SbeObject + ProtobufObject + PartialEq + Debug + Clone>(&mut self, name: &str, object: T) {
        assert_eq!(T::from_protobuf(&protobuf(&object)).as_ref(), Ok(&object), "{name}");
        survives(&object).unwrap();
        let bytes = golden(name);
        for length in 0..bytes.len() {
            let cut = T::from_sbe(&bytes[..length]);
            assert!(matches!(cut, Err(DecodeError::Truncated { .. })), "{name} cut at {length}: {cut:?}");
            let mut short = vec![0; length];
            assert!(matches!(object.to_sbe(&mut short), Err(EncodeError::Capacity { .. })), "{name} into {length}");
        }
        let bytes = protobuf(&object);
        for length in 0..bytes.len() {
            let _ = T::from_protobuf(&bytes[..length]);
            assert!(matches!(object.to_protobuf(&mut vec![0; length]), Err(EncodeError::Capacity { .. })));
        }
    }
}

#[test]
fn samples_survive_cuts_are_noticed() {
    for_each_sample(&mut UntouchedCheck);
}

fn text(length: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof![Just('a'), Just('Z'), Just('~'), Just(' ')], 1..=length)
        .prop_map(|characters| characters.into_iter().collect())
}

fn some<T: Debug + Clone>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(value)
}

fn any_car() -> impl Strategy<Value = car::Car> {
    use car::*;
    let short = || some((i16::MIN + 1)..=i16::MAX);
    let real = || some(any::<f32>().prop_filter("NaN is null", |number| !number.is_nan()));
    let extra = any::<u8>().prop_map(Extra::from_raw);
    let code = (1..=255u8).prop_map(Code::from_raw);
    let available = (0..=254u8).prop_map(Availability::from_raw);
    let engine = (short(), some(-127..=127i8), short(), some(text(3)), some(text(6))).prop_map(
        |(capacity, num_cylinders, max_rpm, manufacturer_code, fuel)| Engine {
            capacity,
            num_cylinders,
            max_rpm,
            manufacturer_code,
            fuel,
        },
    );
    let fuel = (short(), real()).prop_map(|(speed, mpg)| CarFuelFigure { speed, mpg });
    let acceleration = (short(), real()).prop_map(|(mph, seconds)| CarPerformanceFigureAcceleration { mph, seconds });
    let performance = (some(-127..=127i8), proptest::collection::vec(acceleration, 0..5))
        .prop_map(|(octane_rating, acceleration)| CarPerformanceFigure { octane_rating, acceleration });
    let root = (some((i32::MIN + 1)..=i32::MAX), short(), some(available), some(code), some(text(6)), engine);
    let groups = (
        proptest::collection::vec(any::<i32>(), 0..6),
        proptest::collection::vec(extra, 0..4),
        proptest::collection::vec(fuel, 0..4),
        proptest::collection::vec(performance, 0..4),
    );
    (root, groups, ".{0,40}", ".{0,200}").prop_map(|(root, groups, manufacturer, model)| Car {
        serial_number: root.0,
        model_year: root.1,
        available: root.2,
        code: root.3,
        vehicle_code: root.4,
        engine: root.5,
        some_numbers: groups.0,
        extras: groups.1,
        fuel_figure: groups.2,
        performance_figure: groups.3,
        manufacturer,
        model,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_car_survives_both_encodings(car in any_car()) {
        prop_assert_eq!(&car::Car::from_sbe(&sbe(&car).unwrap()).unwrap(), &car);
        prop_assert_eq!(&car::Car::from_protobuf(&protobuf(&car)).unwrap(), &car);
        survives(&car)?;
    }

    #[test]
    fn damaged_messages_never_panic(damage in damage()) {
        for_each_sample(&mut DamagedCheck(damage));
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), headed in any::<bool>()) {
        if headed && bytes.len() > 8 {
            // The parser goes beyond a valid header.
            bytes[..8].copy_from_slice(&[28, 0, 1, 0, 1, 0, 0, 0]);
        }
        if let Ok(car) = car::Car::from_sbe(&bytes) {
            survives(&car)?;
        }
        if let Ok(car) = car::Car::from_protobuf(&bytes) {
            survives(&car)?;
        }
    }
}
