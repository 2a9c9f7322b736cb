//! Files that a bridge's file names: secrets, certificates, keys.

use super::{BridgeConfig, SecretSource};
use gapless_agent::regular_file;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

const SECRET_PARTS: [&str; 6] = ["password", "passphrase", "secret", "key.pem", "jaas", "oauthbearer.config"];
const PATH_ENDS: [&str; 3] = [".location", ".file", ".keytab"];
const KEY_PARTS: [&str; 4] = ["ssl.key.", "keystore", "private.key", "keytab"];
const MODE_READ_BY_OTHERS: u32 = 0o004;

/// Result of [`BridgeConfig::check_files`]; each text begins with the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCheck {
    /// Files and variables that are missing, empty or unreadable: no bridge starts with them.
    pub faults: Vec<String>,
    /// Secrets and keys that every user of the machine may read.
    pub warnings: Vec<String>,
}

pub(crate) fn is_secret(property: &str) -> bool {
    SECRET_PARTS.iter().any(|part| property.contains(part)) && !is_path(property)
}

fn is_path(property: &str) -> bool {
    PATH_ENDS.iter().any(|end| property.ends_with(end))
}

impl BridgeConfig {
    pub(super) fn resolve_paths(&mut self, base: &Path) {
        for (_, secret) in &mut self.secrets {
            if let SecretSource::File(file) = secret {
                *file = base.join(&*file);
            }
        }
        for (_, path) in self.properties.iter_mut().filter(|(name, value)| is_path(name) && is_file_name(value)) {
            *path = base.join(&*path).to_string_lossy().into_owned();
        }
    }

    /// Reads each secret's file or variable, and opens each file that a property names.
    #[must_use]
    pub fn check_files(&self) -> FileCheck {
        let mut check = FileCheck::default();
        for (name, secret) in &self.secrets {
            let key = format!("kafka.secrets.{name}");
            match secret.read() {
                Ok(value) if value.is_empty() => check.faults.push(format!("{key}: it is empty")),
                Ok(_) => {}
                Err(reason) => check.faults.push(format!("{key}: {reason}")),
            }
            if let SecretSource::File(path) = secret {
                check.warn_if_readable(&key, path);
            }
        }
        for (name, value) in self.properties.iter().filter(|(name, value)| is_path(name) && is_file_name(value)) {
            let (key, path) = (format!("kafka.properties.{name}"), Path::new(value));
            if let Err(error) = open(path) {
                check.faults.push(format!("{key}: {value}: {error}"));
            } else if KEY_PARTS.iter().any(|part| name.contains(part)) {
                check.warn_if_readable(&key, path);
            }
        }
        check
    }
}

fn is_file_name(value: &str) -> bool {
    !value.is_empty() && value != "probe"
}

/// Certificates of authorities may be a folder.
fn open(path: &Path) -> io::Result<()> {
    if path.is_dir() { std::fs::read_dir(path).map(drop) } else { regular_file::open(path).map(drop) }
}

impl FileCheck {
    fn warn_if_readable(&mut self, key: &str, path: &Path) {
        let mode = path.metadata().as_ref().map_or(0, Metadata::mode);
        if mode & MODE_READ_BY_OTHERS != 0 {
            let (path, mode) = (path.display(), mode & 0o777);
            let words = format!("{key}: {path}: its mode is {mode:04o}: every user of this machine may read it");
            self.warnings.push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    const FILE: &str = r#"
[kafka]
brokers = ["a:1"]
name = "berlin"
[kafka.properties]
"ssl.ca.location" = "ca.pem"
"ssl.key.location" = "keys/own.pem"
"https.ca.location" = "probe"
"ssl.crl.location" = "missing.pem"
"sasl.oauthbearer.token.endpoint.url" = "https://a/token"
[kafka.secrets]
"sasl.password" = { file = "password" }
"ssl.key.password" = { environment = "GAPLESS_TEST_NO_SUCH_VARIABLE" }
"#;

    #[test]
    fn missing_and_open_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("keys")).unwrap();
        for (name, text, mode) in [
            ("bridge.toml", FILE, 0o644),
            ("ca.pem", "ca", 0o644),
            ("keys/own.pem", "key", 0o640),
            ("password", "", 0o644),
        ] {
            std::fs::write(path(name), text).unwrap();
            std::fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        }
        let config = BridgeConfig::load(path("bridge.toml")).unwrap();
        let ca = path("ca.pem").to_str().unwrap().to_owned();
        assert_eq!(config.properties[0], ("ssl.ca.location".to_owned(), ca));
        assert_eq!(config.properties[2].1, "probe");
        let FileCheck { faults, warnings } = config.check_files();
        let starts =
            ["kafka.secrets.sasl.password: it is empty", "kafka.secrets.ssl.key.password: the variable GAPLESS"];
        assert!(faults.iter().zip(starts).all(|(fault, start)| fault.starts_with(start)), "{faults:?}");
        let missing = format!("kafka.properties.ssl.crl.location: {}: ", path("missing.pem").display());
        assert!(faults.len() == 3 && faults[2].starts_with(&missing), "{faults:?}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].ends_with("password: its mode is 0644: every user of this machine may read it"));
        std::fs::set_permissions(path("keys/own.pem"), Permissions::from_mode(0o604)).unwrap();
        assert!(config.check_files().warnings[1].contains("own.pem: its mode is 0604"));
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "sasl.password",
            "ssl.key.pem",
            "ssl.key.password",
            "ssl.keystore.password",
            "sasl.oauthbearer.config",
            "sasl.oauthbearer.client.secret",
            "sasl.oauthbearer.assertion.private.key.passphrase",
            "sasl.oauthbearer.assertion.private.key.pem",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "sasl.username",
            "ssl.ca.pem",
            "ssl.key.location",
            "ssl.keystore.location",
            "sasl.oauthbearer.token.endpoint.url",
            "sasl.oauthbearer.assertion.private.key.file",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
