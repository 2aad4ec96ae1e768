//! The login of the run's pod: files of a mounted Secret. Its values never reach an argument, a log or a report.

use std::fs;
use std::io;
use std::path::Path;

use crds::names::secret;
use crds::runner::Connection;
use database::Login;

/// Reads the files `username`, `password` and, if there are any, `ca.crt` and `agent-token` of a folder.
///
/// # Errors
/// If one that is needed is missing or unreadable; the message names the file, never what is in it.
pub fn from_folder(folder: &Path, connection: Connection) -> Result<Login, String> {
    let read = |name: &str| {
        let file = folder.join(name);
        fs::read_to_string(&file).map_err(|error| {
            (
                error.kind(),
                format!("credentials file {}: {error}", file.display()),
            )
        })
    };
    // A trailing line end is an editor's, never part of a name or password.
    let needed = |name: &str| {
        let text = read(name).map_err(|(_, message)| message)?;
        Ok::<_, String>(text.trim_end_matches(['\r', '\n']).to_owned())
    };
    let optional = |name: &str| match read(name) {
        Ok(text) => Ok(Some(text)),
        Err((io::ErrorKind::NotFound, _)) => Ok(None),
        Err((_, message)) => Err(message),
    };
    Ok(Login {
        username: needed(secret::USERNAME)?,
        password: needed(secret::PASSWORD)?,
        certificate_authority: optional(secret::CA)?.map(String::into_bytes),
        agent_token: optional(secret::AGENT_TOKEN)?.map(|token| token.trim().to_owned()),
        connection,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_files_and_hides_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let read = || from_folder(folder.path(), Connection::default());
        write("username", "bench\n");
        assert!(read().unwrap_err().contains("password"));
        write("password", " pass word\r\n");
        write("agent-token", "token\n");
        let login = read().unwrap();
        assert_eq!(
            (login.username.as_str(), login.password.as_str()),
            ("bench", " pass word")
        );
        assert_eq!(
            (
                login.certificate_authority.as_deref(),
                login.agent_token.as_deref()
            ),
            (None, Some("token"))
        );
        assert!(!format!("{login:?}").contains("pass word"));
        fs::create_dir(folder.path().join("ca.crt")).unwrap();
        assert!(read().is_err(), "unreadable is not absent");
    }
}
