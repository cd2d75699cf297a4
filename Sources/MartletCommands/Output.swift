private import CLinux
internal import MartletConfig
private import Synchronization

/// Standard output and error, unbuffered.
enum Output {
    /// The errno of the first failed write to standard output; 0 for none.
    private static let failure = Atomic<Int32>(0)

    static func line(_ text: String) {
        let number = write(text.hasSuffix("\n") ? text : text + "\n", to: 1)
        if number != 0 { _ = failure.compareExchange(expected: 0, desired: number, ordering: .relaxed) }
    }

    static func error(_ text: String) { _ = write(text, to: 2) }

    /// The first error of writing to standard output; `nil` if there was none, and where the reader has read enough.
    static var writeError: String? {
        let number = failure.load(ordering: .relaxed)
        guard number != 0, number != EPIPE else { return nil }
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text)
    }

    /// Prints diagnostics to standard error, sorted by position.
    static func report(_ diagnostics: Diagnostics) {
        for diagnostic in diagnostics.sorted { error(TerminalText.escaped(diagnostic.description) + "\n") }
    }

    /// - Returns: 0, or the errno.
    private static func write(_ text: String, to descriptor: Int32) -> Int32 {
        write(ArraySlice(text.utf8), to: descriptor)
    }

    private static func write(_ whole: ArraySlice<UInt8>, to descriptor: Int32) -> Int32 {
        var bytes = whole
        while !bytes.isEmpty {
            let written = unsafe bytes.withUnsafeBytes { unsafe CLinux.write(descriptor, $0.baseAddress, $0.count) }
            if written < 0, martlet_errno() == EINTR { continue }
            guard written > 0 else { return written < 0 ? martlet_errno() : EIO }
            bytes = bytes.dropFirst(written)
        }
        return 0
    }
}

/// Escapes untrusted texts for a terminal.
enum TerminalText {
    /// The text with control and formatting characters written as `\x1b` or `\u{202e}`.
    static func escaped(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control: shown += "\\x" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            case .format, .lineSeparator, .paragraphSeparator: shown += "\\u{\(String(scalar.value, radix: 16))}"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    /// The text if it could be the name of a command or an option: a short word of letters, digits and hyphens.
    static func name(_ text: String) -> String? {
        let isName = text.utf8.allSatisfy {
            (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x5F
        }
        return isName && (1...32).contains(text.utf8.count) ? text : nil
    }
}
