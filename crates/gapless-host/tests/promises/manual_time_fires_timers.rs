//! Timers fire when a test advances the time; other hosts refuse to be advanced.

use crate::programs::{Caller, HOUR, Hours, add};
use gapless_host::{Host, HostError};

#[test]
fn advance_fires_due_timers() {
    let host = Host::in_memory().manual_time().service_from(Hours::default).start().unwrap();
    let mut caller = Caller::new(&host);
    assert_eq!(caller.add(&add(0)), 1);
    let begun_ns = host.advance(HOUR / 2).unwrap();
    assert_eq!(caller.add(&add(0)), 2, "no hour has passed");
    let now_ns = host.advance(HOUR * 3).unwrap();
    assert_eq!(now_ns - begun_ns, 3 * HOUR.as_nanos() as u64);
    // The second command has set the timer again.
    assert_eq!(caller.add(&add(0)), 2 + 3 + 1);
    host.stop().unwrap();
}

#[test]
fn clocks_cannot_be_advanced() {
    let host = Host::in_memory().service_from(Hours::default).start().unwrap();
    let error = host.advance(HOUR).unwrap_err();
    assert!(matches!(&error, HostError::Refused { call: "advance", .. }), "{error}");
    assert!(error.to_string().contains("Host::manual_time"), "{error}");
}
