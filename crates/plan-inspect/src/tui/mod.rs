//! `plan-inspect tui`: a plan on an interactive screen, with navigation and what-if changes.
//!
//! State, updates and drawing are separate modules. [`update`] converts an event to a new state and
//! questions. [`ask`] answers the questions on other threads. [`view`] draws a state without changing it.

mod keys;
mod layout;
mod subject;
mod what_if;
mod ask;
mod state;
mod view;
mod terminal;
mod update;
mod picker;
mod script;
#[cfg(test)]
mod tests;

use crate::args::{self, Tui};
use anyhow::Result;
use ask::{Answer, Asker};
use context_window_ratatui::Theme;
use picker::{Ended, Picker};
use ratatui::layout::Rect;
use state::App;
use std::{
    process::ExitCode,
    sync::{Arc, mpsc},
};
use subject::Subject;
use terminal::Screen;
use what_if::Saved;

/// An event: input, an answer of the worker thread, or a signal.
#[derive(Debug)]
pub(crate) enum Event {
    Input(ratatui::crossterm::event::Event),
    Answer(Answer),
    /// A signal, by its number.
    Signal(i32),
    /// A panic of another thread.
    Broken,
}

/// Runs the screen until the user quits, or prints it once if the arguments have a size for that.
pub(crate) fn run(args: &Tui, colours: &args::Screen) -> Result<ExitCode> {
    if let Some((width, height)) = args.print {
        let size = Rect::new(0, 0, width, height);
        let keys = args.keys.as_deref().unwrap_or_default();
        let picture = match Picker::from_args(args, Theme::plain(), size)? {
            Some(picker) => script::print_picker(picker, size, keys, |id, keys| {
                script::print(app(&with_id(args, id), Theme::plain(), size)?, keys)
            })?,
            None => script::print(app(args, Theme::plain(), size)?, keys)?,
        };
        crate::stdout::print(&picture)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Errors before `Screen::open` are printed normally. After it, the terminal shows only the screen.
    terminal::expect_one()?;
    let theme = if colours.colour() { Theme::colours() } else { Theme::plain() };
    let picker = Picker::from_args(args, theme, Rect::default())?;
    // If the user has no session to choose, the session is read before the terminal is taken over, so that
    // its errors are printed normally.
    let first = if picker.is_none() { Some(app(args, theme, Rect::default())?) } else { None };
    let (happenings, queue) = mpsc::channel();
    let mut screen = Screen::open()?;
    terminal::listen(&happenings)?;
    let chosen = match picker {
        Some(mut picker) => {
            let Rect { width, height, .. } = screen.size()?;
            // The picker was created before the size of the terminal was known.
            picker.happens(&ratatui::crossterm::event::Event::Resize(width, height));
            match picker.ask(&mut screen, &queue) {
                Ok(Ended::Session(id)) => with_id(args, id),
                ended => {
                    screen.close()?;
                    return Ok(match ended? {
                        Ended::Signal(signal) => exit_code(signal),
                        Ended::Session(_) | Ended::Quit => ExitCode::SUCCESS,
                    });
                }
            }
        }
        None => args.clone(),
    };
    let args = &chosen;
    let mut app = match first.map_or_else(|| app(args, theme, Rect::default()), Ok) {
        Ok(app) => app,
        Err(error) => {
            screen.close()?;
            return Err(error);
        }
    };
    let asker = Asker::start(&happenings, args.follow.then(|| args.clone()));
    app.size = screen.size()?;
    app.follow = if args.follow { state::Follow::Yes } else { state::Follow::No };
    let first = app.start();
    // The terminal is restored before an error of the loop is returned and printed.
    let ended = serve(&mut app, &mut screen, &asker, &queue, first);
    screen.close()?;
    Ok(match ended? {
        None => ExitCode::SUCCESS,
        Some(signal) => exit_code(signal),
    })
}

/// Returns the exit code that shells use for a process ended by this signal.
fn exit_code(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(2))
}

/// Returns the arguments for one session of the file.
fn with_id(args: &Tui, id: String) -> Tui {
    let mut args = args.clone();
    args.request.id = Some(id);
    args.picked = true;
    args
}

/// Reads the session, and the saved what-if changes if the arguments name a file of them.
fn app(args: &Tui, theme: Theme, size: Rect) -> Result<App> {
    let subject = Subject::read(args)?;
    let saved = args.what_if.as_deref().map(|path| Saved::read(path, &subject)).transpose()?;
    let mut app = App::new(Arc::new(subject), theme, size);
    if let Some(saved) = saved {
        app.begin_with(saved);
    }
    Ok(app)
}

/// Runs the main loop: draws, waits for an event, and updates the state, until the user quits. Returns the
/// signal that ended it, if any.
fn serve(
    app: &mut App,
    screen: &mut Screen,
    asker: &Asker,
    queue: &mpsc::Receiver<Event>,
    first: Vec<ask::Question>,
) -> Result<Option<i32>> {
    let mut questions = first;
    loop {
        for question in questions.drain(..) {
            // Questions are sent before the drawing, so the worker is busy meanwhile.
            asker.ask(&app.subject, question);
        }
        screen.draw(app)?;
        let mut happening = queue.recv()?;
        // All pending events are handled before the next drawing, because drawing is slow.
        loop {
            match happening {
                Event::Signal(signal) => return Ok(Some(signal)),
                Event::Broken => anyhow::bail!("an internal thread failed; see above"),
                Event::Input(event) => questions.extend(update::input(app, &event)),
                Event::Answer(answer) => questions.extend(update::answer(app, answer)),
            }
            let mut said = Vec::new();
            for order in app.effects.drain(..) {
                match screen.carry_out(&order)? {
                    Some(done) => said.push(done),
                    None => return Ok(None),
                }
            }
            if !said.is_empty() {
                app.note = said.join("; ");
            }
            match queue.try_recv() {
                Ok(next) => happening = next,
                Err(_) => break,
            }
        }
    }
}
