pub mod bus_process;
pub mod spread;
