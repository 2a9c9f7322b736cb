//! A program of its own, because its allocator counts.

use gapless_schema_tests::car::*;
use gapless_schema_tests::samples::reference;
use gapless_testkit::allocations::{self, during};

#[global_allocator]
static ALLOCATOR: allocations::CountingAllocator = allocations::CountingAllocator;

#[test]
fn sbe_is_accessed_in_place() {
    let mut buffer = [0; 512];
    let mut length = 0;
    let written = during(|| {
        let mut car = CarEncoder::new(&mut buffer).unwrap();
        car.serial_number(1).vehicle_code_str("abc").unwrap();
        car.engine().capacity(4200).fuel_str("gas").unwrap();
        car.fuel_figure().unwrap().entry().unwrap().speed(30).mpg(2.5);
        let mut figures = car.performance_figure().unwrap();
        let mut figure = figures.entry().unwrap();
        figure.acceleration().unwrap().entry().unwrap().mph(30);
        car.model("MODEL").unwrap();
        length = car.finish().unwrap();
    });
    let mut seen = 0.0;
    let read = during(|| {
        let car = CarDecoder::parse(&buffer[..length]).unwrap();
        assert_eq!(car.vehicle_code_str(), Ok(Some("abc")));
        seen += car.fuel_figure().filter_map(|figure| figure.mpg()).sum::<f32>();
        for figure in car.performance_figure() {
            seen += figure.acceleration().filter_map(|entry| entry.mph()).map(f32::from).sum::<f32>();
        }
        assert_eq!(car.model_str(), Ok("MODEL"));
    });
    assert_eq!((written, read, seen), (0, 0, 32.5));
}

#[test]
fn protobuf_is_accessed_in_place() {
    let object = reference();
    let mut buffer = [0; 512];
    let mut length = 0;
    let written = during(|| {
        let mut car = CarProtobufEncoder::new(&mut buffer);
        object.encode_protobuf(&mut car);
        length = car.finish().unwrap();
    });
    let mut fields = 0;
    let read = during(|| {
        for field in CarProtobufDecoder::new(&buffer[..length]) {
            fields += match field.unwrap() {
                CarField::SomeNumbers(numbers) => numbers.map(|number| number.unwrap()).sum(),
                CarField::Engine(engine) => engine.count() as i32,
                _ => 1,
            };
        }
    });
    assert_eq!((written, read, fields), (0, 0, 5 + 3 + 10 + 1 + 3 + 2 + 2));
    assert!(during(|| drop(object.clone())) > 0, "the counter counts");
}
