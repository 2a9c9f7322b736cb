//! Checks of the structure of the workspace: rules between its crates, their modules and their documents.

mod crates_form_layers;
mod doc_examples_run;
mod document_names_exist;
mod example_names_differ;
mod exports_match_the_list;
mod fault_names_are_listed;
mod files_are_opened_in_their_folder;
mod module_tables_are_complete;
mod module_tree;
mod reference_pages;
mod rust_tokens;
mod siblings_have_no_cycles;
mod tcp_sends_without_delay;
mod workspace;
