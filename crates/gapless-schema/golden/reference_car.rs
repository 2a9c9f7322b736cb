/// The Car of the canonical benchmark with its values, as an object. Included by tests and examples.
fn reference_car() -> car::Car {
    use car::*;
    let acceleration = |mph, seconds| CarPerformanceFigureAcceleration { mph: Some(mph), seconds: Some(seconds) };
    Car {
        serial_number: Some(12_345),
        model_year: Some(2005),
        available: Some(Availability::T),
        code: Some(Code::A),
        vehicle_code: Some("abcdef".to_owned()),
        engine: Engine {
            capacity: Some(4200),
            num_cylinders: Some(8),
            max_rpm: None,
            manufacturer_code: Some("abc".to_owned()),
            fuel: None,
        },
        some_numbers: vec![0, 1, 2, 3, 4],
        extras: vec![Extra::SportsPack, Extra::SunRoof],
        fuel_figure: vec![
            CarFuelFigure { speed: Some(30), mpg: Some(35.9) },
            CarFuelFigure { speed: Some(55), mpg: Some(49.0) },
            CarFuelFigure { speed: Some(75), mpg: Some(40.0) },
        ],
        performance_figure: vec![
            CarPerformanceFigure {
                octane_rating: Some(95),
                acceleration: vec![acceleration(30, 4.0), acceleration(60, 7.5), acceleration(100, 12.2)],
            },
            CarPerformanceFigure {
                octane_rating: Some(99),
                acceleration: vec![acceleration(30, 3.8), acceleration(60, 7.1), acceleration(100, 11.8)],
            },
        ],
        manufacturer: "MANUFACTURER".to_owned(),
        model: "MODEL".to_owned(),
    }
}
