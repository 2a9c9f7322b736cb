#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, run};
use gapless::rpc::{CallContext, Domain, DomainOptions, Refusal};
use serde_json::{Value, json};
use std::path::Path;

fn here(folder: &Path, words: &[&str]) -> ProgramOutput {
    run(folder, &[words, &["--directory", "domain"]].concat())
}

#[test]
fn call_options_and_error_details() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let domain = Domain::open_directory(folder.join("domain"), DomainOptions::default()).unwrap();
    let _key = domain.serve("key").handle(|(), context: &CallContext| Ok(context.key())).unwrap();
    let refuse = |left: u64, _context: &CallContext| {
        let payload = if left == 0 { vec![0xff, 0] } else { format!("{{\"left\": {left}}}").into_bytes() };
        Err::<u64, _>(Refusal { code: 409, text: "too few".to_owned(), payload }.into())
    };
    let _refuse = domain.serve("refuse").handle(refuse).unwrap();
    let words = ["call", "key", "--key", "4711", "--priority", "urgent", "--retry", "always"];
    assert_eq!(here(folder, &words).good(), "4711\n");
    assert_eq!(here(folder, &["call", "key", "--json"]).good(), "{\"reply\":0}\n");
    for (words, text) in [(["--priority", "early"], "urgent, high, normal, low"), (["--retry", "once"], "not-begun")] {
        let said = here(folder, &[&["call", "key"], &words[..]].concat()).error(2);
        assert!(said.contains(text), "{said}");
    }

    let refused = here(folder, &["call", "refuse", "3"]).error(1);
    assert_eq!(refused, "gapless: the call of refuse was refused with code 409: too few; payload: {\"left\":3}\n");
    for (request, payload) in [("3", json!({ "left": 3 })), ("0", json!("ff00"))] {
        for command in ["call", "broadcast"] {
            let ended = here(folder, &[command, "refuse", request, "--json"]);
            let object: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_eq!(
                (&object["kind"], &object["code"], &object["payload"]),
                (&"refused".into(), &409.into(), &payload)
            );
            ended.error(1);
        }
    }
    let nobody = here(folder, &["call", "nobody", "--json"]);
    assert_eq!(nobody.stdout, "{\"error\":\"no instance serves the route nobody\",\"kind\":\"no_route\"}\n");
    nobody.error(1);
}

#[test]
fn routes_are_selected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let domain = Domain::open_directory(folder.join("domain"), DomainOptions::default()).unwrap();
    let served = ["shop", "shop/pay", "shop/take", "shopping"];
    let _served = served.map(|route| domain.serve(route).handle(|(), _context| Ok(())).unwrap());
    let shown = |names: &[&str]| -> Vec<String> {
        let words = [&["routes", "--json"], names].concat();
        let routes: Vec<Value> = serde_json::from_str(&here(folder, &words).good()).unwrap();
        routes.iter().map(|route| route["route"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(shown(&[]), served);
    assert_eq!(shown(&["shop"]), ["shop", "shop/pay", "shop/take"]);
    assert_eq!(shown(&["shop/"]), ["shop", "shop/pay", "shop/take"]);
    assert_eq!(shown(&["shop/pay", "shopping"]), ["shop/pay", "shopping"]);
    let none = here(folder, &["routes", "sho"]);
    assert!(none.stderr.contains("no process serves sho in the domain"), "{}", none.stderr);
}

#[test]
fn top_finds_a_domain_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("gapless")).unwrap();
    let domain = Domain::open_directory(folder.join("gapless/shop"), DomainOptions::default()).unwrap();
    let _served = domain.serve("pay").handle(|(), _context| Ok(())).unwrap();
    let top = |words: &[&str], domain: Option<&str>| {
        let mut command = gapless(folder, &[&["top", "--interval", "0.05", "--once", "--json"], words].concat());
        command.env("XDG_RUNTIME_DIR", folder).env_remove("GAPLESS_DOMAIN");
        command.envs(domain.map(|domain| ("GAPLESS_DOMAIN", domain)));
        ProgramOutput::from(command.output().unwrap())
    };
    let route = |ended: ProgramOutput| -> Value {
        let read: Value = serde_json::from_str(&ended.good()).unwrap();
        read["directories"][0]["routes"][0]["route"].clone()
    };
    assert_eq!(route(top(&["--domain", "shop"], None)), "pay");
    assert_eq!(route(top(&[], Some("shop"))), "pay");
    assert_eq!(route(top(&["--domain", "shop"], Some("other"))), "pay", "what is said stands before the environment");
    assert!(top(&[], Some("other")).error(1).contains("there is no domain other in "));
    assert!(top(&[], Some("a/b")).error(2).contains("GAPLESS_DOMAIN: "));
    let tip = top(&["shop"], None).error(1);
    assert!(tip.ends_with(", or a domain by its name: --domain shop\n"), "{tip}");
    assert!(!top(&["other"], None).error(1).contains("--domain"), "no useless advice");
    assert!(top(&[], None).error(1).ends_with("; a domain is looked at by --domain NAME\n"));
}
