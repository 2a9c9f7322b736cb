//! Scenarios of programs that start and kill themselves (`faults`, `processes`). `main` first plays the role that its
//! parent asked for; else it is a test program.

use crate::random::{self, Random};
use libtest_mimic::{Arguments, Failed, Trial};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

type ScenarioFn = Box<dyn FnOnce(&mut Random) + Send>;

pub struct Module {
    path: &'static str,
    at_a_time: usize,
    has_choices: bool,
    scenarios: Vec<(String, ScenarioFn)>,
}

impl Module {
    /// Takes `module_path!()`; scenarios run one after the other.
    pub fn new(path: &'static str) -> Self {
        Self { path, at_a_time: 1, has_choices: false, scenarios: Vec::new() }
    }

    /// Suits scenarios that wait more than they work.
    pub fn side_by_side(self, at_a_time: usize) -> Self {
        Self { at_a_time, ..self }
    }

    pub fn scenario(mut self, name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> Self {
        self.scenarios.push((name.into(), Box::new(|_| run())));
        self
    }

    pub fn with_choices(mut self, name: impl Into<String>, run: impl FnOnce(&mut Random) + Send + 'static) -> Self {
        self.has_choices = true;
        self.scenarios.push((name.into(), Box::new(run)));
        self
    }

    /// Runs only if `GAPLESS_FULL` is set; another scenario covers nearly the same.
    pub fn in_full(self, name: impl Into<String>, run: impl FnOnce(&mut Random) + Send + 'static) -> Self {
        if random::is_full() { self.with_choices(name, run) } else { self }
    }

    fn trials(self, seed: u64) -> impl Iterator<Item = Trial> {
        // Without the program's own name, as other test programs list theirs.
        let module = self.path.split_once("::").expect("a module of the program").1;
        self.scenarios.into_iter().map(move |(name, run)| {
            let name = format!("{module}::{name}");
            let told = name.clone();
            Trial::test(name, move || {
                let begun = Instant::now();
                let ended = catch_unwind(AssertUnwindSafe(|| run(&mut Random::of(seed, &told))));
                println!("{told} took {} s", begun.elapsed().as_secs());
                ended.map_err(|panic| {
                    Failed::from(format!("{}\nagain: {}", reason(&*panic), again(seed, self.path, &told)))
                })
            })
        })
    }
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}

fn again(seed: u64, module: &str, name: &str) -> String {
    let full = if random::is_full() { "GAPLESS_FULL=1 " } else { "" };
    let program = module.split("::").next().unwrap_or_default();
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "CRATE".to_owned());
    format!("GAPLESS_SEED={seed} {full}cargo test -p {package} --test {program} -- --exact {name}")
}

/// `libtest_mimic` accepts one filter; further ones are returned apart, because other test programs accept any number.
fn arguments() -> (Arguments, Vec<String>) {
    const HAVE_VALUES: [&str; 6] = ["--skip", "--test-threads", "--format", "--color", "--logfile", "-Z"];
    // The program's name is no filter.
    let (mut taken, mut filters, mut is_value) = (Vec::new(), Vec::new(), true);
    for argument in std::env::args() {
        let is_filter = !is_value && !argument.starts_with('-');
        is_value = HAVE_VALUES.contains(&argument.as_str());
        if is_filter { filters.push(argument) } else { taken.push(argument) }
    }
    if filters.len() == 1 {
        taken.append(&mut filters);
    }
    (Arguments::from_iter(taken), filters)
}

/// First those that run one at a time, then the parallel ones.
pub fn run(modules: Vec<Module>) -> ExitCode {
    let (arguments, filters) = arguments();
    let is_meant = |trial: &Trial| {
        let meets = |filter: &String| match arguments.exact {
            true => trial.name() == filter,
            false => trial.name().contains(filter),
        };
        filters.is_empty() || filters.iter().any(meets)
    };
    let has_choices = !arguments.list && modules.iter().any(|module| module.has_choices);
    let seed = if has_choices { random::printed_seed() } else { random::seed() };
    let mut groups = BTreeMap::<usize, Vec<Trial>>::new();
    for module in modules {
        groups.entry(module.at_a_time).or_default().extend(module.trials(seed).filter(is_meant));
    }
    let mut has_failed = false;
    // Without a choice, one group stays to report that.
    let is_chosen = groups.values().any(|trials| !trials.is_empty());
    groups.retain(|_, trials| !is_chosen || !trials.is_empty());
    for (at_a_time, trials) in groups {
        let test_threads = arguments.test_threads.or(Some(at_a_time));
        has_failed |= libtest_mimic::run(&Arguments { test_threads, ..arguments.clone() }, trials).has_failed();
    }
    // The same format as other test programs.
    if has_failed { ExitCode::from(101) } else { ExitCode::SUCCESS }
}
