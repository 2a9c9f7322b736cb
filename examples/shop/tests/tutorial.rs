//! The code of the tutorial is that of `tickets.rs`.

#[test]
fn tutorial_has_the_code_of_the_program() {
    let program = include_str!("../src/bin/tickets.rs");
    let tutorial = include_str!("../../../docs/guides/tutorial.md");
    let before_changes = tutorial.split("## Changing it").next().unwrap();
    let blocks: Vec<&str> = before_changes.split("```rust,ignore\n").skip(1).collect();
    assert_eq!(blocks.len(), 5);
    let mut length = 0;
    for block in blocks {
        let code = block.split("```").next().unwrap();
        assert!(program.contains(code), "not in tickets.rs:\n{code}");
        length += code.trim().len();
    }
    assert!(length + 120 > program.len(), "the tutorial has {length} bytes of {}", program.len());
}
