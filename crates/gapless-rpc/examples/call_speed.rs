//! What a call between two processes costs: `cargo run --release -p gapless-rpc --example call_speed`. With `parked` both sides
//! sleep while they wait, else each spins on a core of its own.

use gapless_rpc::{CallOptions, CallerOptions, Domain, DomainOptions, Reach, Waiting};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUTE: &str = "increment";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_parked = arguments.iter().any(|argument| argument == "parked");
    let waiting = if is_parked { Waiting::Park } else { Waiting::Spin };
    if arguments.first().is_some_and(|argument| argument == "copy") {
        let domain = Domain::open_directory(&arguments[1], DomainOptions::default())?;
        let _route = domain.serve(ROUTE).waiting(waiting).handle(|mut bytes: Vec<u8>, _context| {
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            Ok(bytes)
        })?;
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("call-speed-{}", std::process::id()));
    let mut copy = Command::new(std::env::current_exe()?)
        .args(["copy".as_ref(), folder.as_os_str(), if is_parked { "parked" } else { "spinning" }.as_ref()])
        .stdin(Stdio::piped())
        .spawn()?;
    let domain = Domain::open_directory(&folder, DomainOptions::default())?;
    let options = CallerOptions { waiting, reach: Reach::OtherProcesses, ..CallerOptions::default() };
    let caller = domain.caller_with::<Vec<u8>, Vec<u8>>(ROUTE, options)?;
    let patient = CallOptions { wait_for_route: Some(Duration::from_secs(10)), ..CallOptions::default() };
    caller.call_with(vec![0; 8], &patient)?;
    for length in [1, 64, 256, 1024, 4096] {
        let count = if is_parked { 5_000 } else { 300_000 };
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let begun = Instant::now();
            let reply = caller.call(vec![7; length])?;
            times.push(begun.elapsed());
            assert!(reply.len() == length && reply[length - 1] == 8);
        }
        times.sort_unstable();
        println!("{length:5} B one by one: p50 {:?}, p99 {:?}", times[count / 2], times[count * 99 / 100]);
        let begun = Instant::now();
        let mut calls = std::collections::VecDeque::new();
        for _ in 0..count {
            if calls.len() == 32 {
                wait(calls.pop_front())?;
            }
            calls.push_back(caller.start(vec![7; length]));
        }
        while let Some(call) = calls.pop_front() {
            wait(Some(call))?;
        }
        println!("{length:5} B, 32 in flight: {:.0}/s", count as f64 / begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        for _ in 0..count {
            caller.send(vec![7; length])?;
        }
        caller.call(vec![7; length])?;
        println!("{length:5} B, one way: {:.0}/s", count as f64 / begun.elapsed().as_secs_f64());
    }
    drop(copy.stdin.take());
    copy.wait()?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

fn wait(call: Option<gapless_rpc::Call<Vec<u8>>>) -> Result<(), gapless_rpc::CallError> {
    call.map_or(Ok(()), |call| call.wait().map(|_| ()))
}
