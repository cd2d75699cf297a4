private import CLinux
private import Glibc

/// Files by their descriptors, with the reasons of the system.
enum SystemFile {
    /// Why a call has failed: the last one, or one with this errno.
    static func reason(_ number: Int32 = martlet_errno()) -> String {
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text)
    }

    /// Reads a file in parts, and closes it.
    /// - Parameters:
    ///   - descriptor: negative if it could not be opened.
    ///   - take: gets each part, and returns whether more are wanted.
    /// - Returns: why it cannot be read; `nil` on success.
    static func read(_ descriptor: Int32, _ take: (ArraySlice<UInt8>) -> Bool) -> String? {
        guard descriptor >= 0 else { return reason() }
        defer { close(descriptor) }
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe CLinux.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, martlet_errno() == EINTR { continue }
            guard count >= 0 else { return reason() }
            guard count > 0, take(chunk[..<count]) else { return nil }
        }
    }

    /// Writes all bytes.
    /// - Returns: 0, or the errno.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe CLinux.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, martlet_errno() == EINTR { continue }
            guard count > 0 else { return count < 0 ? martlet_errno() : EIO }
            rest = rest.dropFirst(count)
        }
        return 0
    }

    /// Creates a file that must not exist yet.
    /// - Parameter mode: its permissions.
    /// - Returns: why it could not be written; `nil` on success.
    static func create(_ path: String, _ bytes: [UInt8], mode: UInt32) -> String? {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { return errno == EEXIST ? "the file exists" : reason() }
        defer { close(descriptor) }
        let number = write(bytes, to: descriptor)
        guard number != 0 else { return nil }
        unsafe unlink(path)
        return reason(number)
    }
}

/// The error of reading or parsing an ``ArgumentFile``.
struct ArgumentFileError: Error {
    let message: String
}

/// A small file that is named by an argument.
enum ArgumentFile {
    private static let limit = 64 * 1024

    /// Reads a file, or standard input for `-`, and trims white space.
    /// - Parameter what: the file, for error messages: `the token file`.
    static func read(
        _ path: String, _ what: String, limit: Int = ArgumentFile.limit
    ) throws(ArgumentFileError) -> [UInt8] {
        trimmed(try readWhole(path, what, limit: limit))
    }

    /// Reads a file, or standard input for `-`, as it is.
    static func readWhole(_ path: String, _ what: String, limit: Int) throws(ArgumentFileError) -> [UInt8] {
        var bytes: [UInt8] = []
        let failure = SystemFile.read(path == "-" ? dup(0) : unsafe martlet_open_read(path)) { part in
            bytes += part
            return bytes.count <= limit
        }
        if let failure { throw ArgumentFileError(message: "cannot read \(what) '\(path)': \(failure)") }
        guard bytes.count <= limit else {
            throw ArgumentFileError(message: "\(what) is larger than \(limit / 1024) KiB")
        }
        return bytes
    }

    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        let isSpace = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
        let head = bytes.drop(while: isSpace)
        let end = head.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? head.startIndex
        return Array(head[..<end])
    }
}
