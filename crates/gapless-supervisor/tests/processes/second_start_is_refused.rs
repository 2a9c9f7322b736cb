use super::instance_program::{CLOSE, EXIT, STAY};
use super::test_place::{TestPlace, name};
use gapless_supervisor::launch::STATUS_ALREADY;
use gapless_supervisor::state_directory::Holder;
use gapless_testkit::process::Process;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use std::process::Stdio;
use std::time::Duration;

pub fn module(rounds: u64) -> Module {
    Module::new(module_path!())
        .with_choices("concurrent_launchers_start_once", move |random| concurrent_launchers_start_once(rounds, random))
        .scenario("closed_lock_prevents_a_second_start", closed_lock_prevents_a_second_start)
}

fn start(place: &TestPlace, instance: &str, incarnation: u64) -> Process {
    let mut command = place.launcher(&name(instance), incarnation);
    Process::start_as(command.stderr(Stdio::null()))
}

fn concurrent_launchers_start_once(rounds: u64, random: &mut Random) {
    let place = TestPlace::without_supervisor();
    let instance = name("a.1");
    let mut incarnation = 0;
    for _ in 0..rounds {
        incarnation += 1;
        let wish = random.pick(&[STAY, "exit:0"]);
        place.write_plan(&instance, incarnation, wish);
        let mut first = start(&place, "a.1", incarnation);
        std::thread::sleep(Duration::from_micros(random.below(8_000)));
        let replaced = random.happens(500);
        if replaced {
            incarnation += 1;
            place.write_plan(&instance, incarnation, wish);
        }
        let mut second = start(&place, "a.1", incarnation);
        if wish == STAY {
            until("one launcher has exited", || first.ended().is_some() || second.ended().is_some());
            let holder = || place.directory.instance(&instance).holder().unwrap();
            until("the other runs", || {
                let is_it = |process: &Process| matches!(holder(), Holder::Recorded { record, .. } if record.process.process_id == process.pid().as_raw_pid() as u32);
                (is_it(&first) || is_it(&second)) && place.starts().contains_key(&(instance.clone(), incarnation))
                    || place.starts().contains_key(&(instance.clone(), incarnation - 1)) && replaced
            });
            first.kill();
            second.kill();
        } else {
            let codes = [first.wait().code(), second.wait().code()];
            let ran = codes.iter().filter(|code| **code == Some(0)).count();
            let gave_way = codes.iter().filter(|code| **code == Some(i32::from(STATUS_ALREADY))).count();
            assert!(ran + gave_way == 2 && (ran == 1 || ran == 2 && replaced), "{codes:?}");
        }
        // Instances detect duplicates themselves; `starts` panics on a start recorded twice.
        place.check_starts();
    }
    let starts = place.starts().len() as u64;
    assert!(starts >= rounds, "{starts} starts in {rounds} rounds");
    println!("{starts} starts of {incarnation} intents by {} launchers", 2 * rounds);
}

fn closed_lock_prevents_a_second_start() {
    let place = TestPlace::without_supervisor();
    let instance = name("a.1");
    // Some daemons close all unknown descriptors.
    place.write_plan(&instance, 1, CLOSE);
    let mut first = start(&place, "a.1", 1);
    until("it has closed everything", || place.folder().join("closed").exists());
    let files = place.directory.instance(&instance);
    let Holder::Recorded { record, .. } = files.holder().unwrap() else { panic!("it lives") };
    assert_eq!(record.process.process_id as i32, first.pid().as_raw_pid());
    place.write_plan(&instance, 2, "exit:0");
    let status = start(&place, "a.1", 2).wait();
    assert_eq!(status.code(), Some(i32::from(STATUS_ALREADY)));
    assert!(files.read_launch_failure(2).unwrap().unwrap().already_runs);
    first.kill();
    place.write_plan(&instance, 3, &format!("{EXIT}5"));
    assert_eq!(start(&place, "a.1", 3).wait().code(), Some(5));
}
