//! Load generators, floors, benchmarks and reports
