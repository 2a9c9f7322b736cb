//! Checks of the structure of the workspace: rules between its crates, their modules and their documents.

mod contents_are_complete;
mod crates_are_floors;
mod documents_name_what_exists;
mod examples_have_names_of_their_own;
mod examples_of_documentation_are_run;
mod files_are_opened_in_their_folder;
mod module_tree;
mod names_of_faults_are_listed;
mod rust_tokens;
mod siblings_are_floors;
mod tcp_sends_without_delay;
mod the_face_is_chosen;
mod workspace;
