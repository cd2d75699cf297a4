private import Glibc

/// Writes files that must not exist yet.
enum NewFile {
    /// Creates a file.
    /// - Parameter mode: its permissions.
    /// - Returns: why it could not be written; `nil` on success.
    static func write(_ text: [UInt8], to path: String, mode: UInt32) -> String? {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else {
            return errno == EEXIST ? "the file exists" : reason
        }
        defer { close(descriptor) }
        var rest = text[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let reason = reason
                unsafe unlink(path)
                return reason
            }
            rest = rest.dropFirst(count)
        }
        return nil
    }

    private static var reason: String {
        guard let text = unsafe strerror(errno) else { return "error \(errno)" }
        return unsafe String(cString: text)
    }
}
