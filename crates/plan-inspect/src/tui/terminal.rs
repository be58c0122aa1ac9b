//! The terminal, which is taken over, drawn on, and restored in every case.

use super::{
    Event,
    state::{App, Effect, NewSession},
    view,
};
use crate::{
    compaction::{self, Compacted},
    output,
};
use anyhow::{Context, Result, bail};
use context_window_report as report;
use ratatui::{
    DefaultTerminal, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        clipboard::CopyToClipboard,
        event::{self, DisableMouseCapture, EnableMouseCapture},
        execute,
    },
    layout::Rect,
};
use std::{
    io::{self, IsTerminal},
    panic,
    path::Path,
    sync::mpsc::Sender,
    thread,
    time::Duration,
};

/// Checks that standard output is a terminal.
pub(crate) fn expect_one() -> Result<()> {
    anyhow::ensure!(
        io::stdout().is_terminal(),
        "tui: standard output is not a terminal; expected a terminal, or `plan-inspect SESSION` for a report"
    );
    Ok(())
}

/// The terminal in raw mode with an alternate screen.
pub(crate) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal over. After a panic, it is restored before the message is printed.
    pub(crate) fn open() -> Result<Self> {
        let terminal = ratatui::try_init().context("the terminal cannot be set up")?;
        // The hook of ratatui restores the screen, but not the mouse.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let _ = execute!(io::stdout(), DisableMouseCapture);
            hook(panic);
        }));
        execute!(io::stdout(), EnableMouseCapture)?;
        Ok(Self { terminal })
    }

    pub(crate) fn size(&self) -> Result<Rect> {
        let size = self.terminal.size()?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }

    /// Draws something other than the plan, such as the list of sessions.
    pub(crate) fn draw_with(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> Result<()> {
        self.terminal.draw(draw)?;
        Ok(())
    }

    pub(crate) fn draw(&mut self, app: &App) -> Result<()> {
        self.terminal.draw(|frame| view::draw(frame, app))?;
        // A test uses this to check that a panic restores the terminal.
        #[cfg(debug_assertions)]
        assert!(std::env::var_os("PLAN_INSPECT_PANIC").is_none(), "as PLAN_INSPECT_PANIC asks");
        Ok(())
    }

    /// Carries out an effect and describes the result. Returns `None` if the program is to quit.
    pub(crate) fn carry_out(&mut self, order: &Effect) -> Result<Option<String>> {
        Ok(Some(match order {
            Effect::Quit => return Ok(None),
            Effect::Suspend => {
                self.suspend()?;
                String::new()
            }
            Effect::Copy(text) => {
                execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))?;
                format!("copied {}", report::brief(text))
            }
            // A failed write is reported on the screen, which continues.
            Effect::Write(text) => saved(write_new(Path::new(""), "what-if", ".json", |path| {
                output::create(path, text.as_bytes())
            })),
            Effect::WriteSession(new) => saved(write_session(Path::new(""), new)),
        }))
    }

    /// Suspends the process like Ctrl-Z in a shell, and takes the terminal over again afterwards.
    fn suspend(&mut self) -> Result<()> {
        self.give_back()?;
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        ratatui::crossterm::terminal::enable_raw_mode()?;
        execute!(io::stdout(), ratatui::crossterm::terminal::EnterAlternateScreen, EnableMouseCapture)?;
        // A new terminal draws everything. The old one would query the cursor position, and the thread that
        // reads keys would take the reply.
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    /// Restores the terminal for the shell.
    fn give_back(&mut self) -> Result<()> {
        execute!(io::stdout(), DisableMouseCapture)?;
        ratatui::try_restore()?;
        self.terminal.show_cursor()?;
        Ok(())
    }

    pub(crate) fn close(mut self) -> Result<()> {
        self.give_back()
    }
}

fn saved(name: Result<String>) -> String {
    match name {
        Ok(name) => format!("saved to {name}"),
        Err(error) => format!("not saved: {error:#}"),
    }
}

/// Writes a compacted session to a new file in a folder. The session itself is not changed. Returns the path.
pub(super) fn write_session(folder: &Path, new: &NewSession) -> Result<String> {
    let source = &new.source;
    let compactions: Vec<&Compacted> = new.compactions.iter().map(|one| &**one).collect();
    let name = source.session.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|name| name != "-").unwrap_or_else(|| "session.jsonl".into());
    // The extension begins at the first dot, so that `.jsonl.gz` stays together.
    let (stem, extension) = name.split_at(name.find('.').filter(|at| *at > 0).unwrap_or(name.len()));
    write_new(folder, &format!("{stem}-compacted"), extension, |path| {
        compaction::write(path, source, &compactions)
    })
}

/// Writes a new file and returns its path. An existing file is never overwritten; the name gets a number
/// instead.
fn write_new(
    folder: &Path,
    stem: &str,
    extension: &str,
    write: impl Fn(&Path) -> Result<()>,
) -> Result<String> {
    for number in 1..1000 {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{stem}{number}{extension}"));
        if !path.exists() {
            return write(&path).map(|()| path.display().to_string());
        }
    }
    bail!("too many files called {stem}")
}

/// Starts threads that listen to keys, mouse and signals.
pub(crate) fn listen(happenings: &Sender<Event>) -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let to = happenings.clone();
    thread::spawn(move || {
        for signal in &mut signals {
            // The receiver is gone after the main loop has ended.
            if to.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
    let to = happenings.clone();
    thread::spawn(move || {
        // Polling avoids a blocking `read`. After a resize, drawing reads the cursor position, and keys that
        // arrive meanwhile go to a queue. A blocking `read` would not look at this queue before the next key.
        while let Ok(is_there) = event::poll(Duration::from_millis(50)) {
            if !is_there {
                continue;
            }
            let Ok(event) = event::read() else { break };
            if to.send(Event::Input(event)).is_err() {
                return;
            }
        }
        // An error means that the terminal has been closed.
        let _ = to.send(Event::Signal(SIGHUP));
    });
    Ok(())
}
