//! splatstage
pub mod app;
pub mod camera;
pub mod formats;
pub mod frame;
pub mod gpu;
pub mod motion;
pub mod reference;
pub mod scene;
pub mod script;
