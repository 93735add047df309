"""Render the output of ``dumpsys`` for windows, activities, display and frames."""

from mplab.device.android.state import State

_FRAME_NS = 16_666_667


def _record(state: State) -> tuple[str, str]:
    package, activity = state.screen.focus()
    return package, f"{package}/{activity}"


def _full(state: State) -> str:
    package, activity = state.screen.focus()
    return f"{package}/{package}{activity}" if activity.startswith(".") else f"{package}/{activity}"


def window(state: State) -> str:
    """Return the output of ``dumpsys window``; it is the same with ``windows``, ``displays`` or ``policy``."""
    _package, record = _record(state)
    size = state.size_override or (state.model.screen.width, state.model.screen.height)
    focus = (
        f"Window{{a1b2c3d u0 {_full(state)}}}"
        if state.awake and not state.locked
        else "Window{e4f5a6b u0 NotificationShade}"
    )
    pixels = f"{size[0]}x{size[1]}"
    on = "SCREEN_STATE_ON" if state.awake else "SCREEN_STATE_OFF"
    return (
        "WINDOW MANAGER POLICY STATE (dumpsys window policy)\n"
        f"    mAwake={str(state.awake).lower()}\n    mScreenOnEarly={str(state.awake).lower()} "
        f"mScreenOnFully={str(state.awake).lower()}\n"
        f"    mShowingLockscreen={str(state.locked).lower()} mDreamingLockscreen={str(not state.awake).lower()}\n"
        f"    KeyguardServiceDelegate\n      showing={str(state.locked).lower()}\n      screenState={on}\n"
        "WINDOW MANAGER DISPLAY CONTENTS (dumpsys window displays)\n"
        "  Display: mDisplayId=0\n"
        f"    init={pixels} {state.model.screen.density}dpi cur={pixels} app={pixels}\n"
        "    mCurrentRotation=ROTATION_0\n"
        f"  mCurrentFocus={focus}\n"
        f"  mFocusedApp=ActivityRecord{{9d8c7b6 u0 {record} t12}}\n"
    )


def activity_top(state: State) -> str:
    """Return the output of ``dumpsys activity top``."""
    package, record = _record(state)
    return (
        f"TASK {package} id=12 userId=0\n"
        f"  ACTIVITY {record} 9d8c7b6 pid=4321\n"
        "    Local Activity 1a2b3c4 State:\n      mResumed=true mStopped=false mFinished=false\n"
    )


def activity_activities(state: State) -> str:
    """Return the output of ``dumpsys activity activities``."""
    _package, record = _record(state)
    resumed = f"ActivityRecord{{9d8c7b6 u0 {record} t12}}"
    key = (
        "mResumedActivity"
        if state.model.sdk < 31
        else "topResumedActivity"
        if state.model.sdk >= 33
        else "mResumedActivity"
    )
    return (
        "ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\n"
        "Display #0 (activities from top to bottom):\n"
        f"  * Task{{5e6f7a8 #12 type=standard A=10101:{_package} U=0}}\n"
        f"    {key}={resumed}\n"
        f"  ResumedActivity: {resumed}\n"
    )


def display(state: State) -> str:
    """Return the output of ``dumpsys display``."""
    width, height = state.size_override or (state.model.screen.width, state.model.screen.height)
    return (
        "DISPLAY MANAGER (dumpsys display)\n"
        f"  mGlobalDisplayState={'ON' if state.awake else 'OFF'}\n"
        "  mViewports=[DisplayViewport{type=INTERNAL, valid=true, isActive=true, displayId=0, "
        "uniqueId='local:4619827259835644672', physicalPort=0, orientation=0, "
        f"logicalFrame=Rect(0, 0 - {width}, {height}), "
        f"physicalFrame=Rect(0, 0 - {width}, {height}), deviceWidth={width}, deviceHeight={height}}}]\n"
        f"  mScreenState={'ON' if state.awake else 'OFF'}\n"
    )


def surface_latency(state: State, frames: int = 127) -> str:
    """Return the output of ``dumpsys SurfaceFlinger --latency WINDOW``: refresh period, 3 time stamps per frame; ns."""
    now = int(state.uptime_s * 1e9)
    rows = [(at, at + 8_000_000, at + 2_000_000) for at in range(now - frames * _FRAME_NS, now, _FRAME_NS)]
    return f"{_FRAME_NS}\n" + "".join("{}\t{}\t{}\n".format(*row) for row in rows)
