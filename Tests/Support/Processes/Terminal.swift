import Foundation

/// A program at a simulated terminal, and a user who types there.
package enum Terminal {
    /// Types a line at each prompt, once the terminal no longer echoes.
    private static let typist = """
        import os, pty, signal, sys, termios, time
        lines = sys.argv[1].split("|")
        child, terminal = pty.fork()
        if child == 0:
            # The threads that run tests block signals, and children inherit that.
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execv(sys.argv[2], sys.argv[2:])
        shown = b""
        while True:
            try:
                chunk = os.read(terminal, 4096)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
            if shown.endswith(b": ") and lines:
                while termios.tcgetattr(terminal)[3] & termios.ECHO:
                    time.sleep(0.01)
                os.write(terminal, lines.pop(0).encode())
        sys.stdout.write(shown.decode())
        if not termios.tcgetattr(terminal)[3] & termios.ECHO:
            sys.stdout.write("[the terminal still hides]")
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """

    /// Runs a program to its end; its whole screen is the output, and 256 less the number of the signal that ended it
    /// the exit code.
    ///
    /// - Parameter typing: the lines for its prompts, each with the key that ends it; none holds a `|`.
    package static func run(_ program: String, _ arguments: [String], typing lines: [String]) throws -> CommandResult {
        let python = try Executable.named("python3")
        return try MartletTesting.run(
            python, ["-c", typist, lines.joined(separator: "|"), program] + arguments)
    }
}
