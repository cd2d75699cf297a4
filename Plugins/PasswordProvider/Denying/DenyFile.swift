private import Glibc
internal import MartletConfig
internal import MartletCore
private import MartletCrypto

/// A file of denied passwords that stays open: a version that replaces it is opened by the next reload.
final class DenyFile: Sendable {
    private let list: DenyList<OpenFile>

    /// Opens and checks a file.
    init(path: String) throws(DenyListError) { list = try DenyList(OpenFile(path)) }

    /// Whether a password, in the form that is hashed, is on the list; blocks while the file is read.
    func contains(_ password: Secret) throws(DenyListError) -> Bool {
        try list.contains(password.withBytes { SHA1.digest($0) })
    }

    /// A file that is open for reading.
    private final class OpenFile: DenyListBytes {
        let size: Int64
        private let descriptor: Int32

        init(_ path: String) throws(DenyListError) {
            guard !path.utf8.contains(0) else { throw DenyListError("the path contains a NUL byte") }
            // Nonblocking, because opening a pipe would wait for a writer.
            let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
            guard descriptor >= 0 else { throw Self.systemError() }
            var status = stat()
            let isUsable = unsafe fstat(descriptor, &status) == 0 && status.st_mode & UInt32(S_IFMT) == UInt32(S_IFREG)
            guard isUsable else {
                close(descriptor)
                throw DenyListError("it is not a regular file")
            }
            self.descriptor = descriptor
            size = Int64(status.st_size)
        }

        deinit { close(descriptor) }

        func read(at offset: Int64, count: Int) throws(DenyListError) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: count)
            var filled = 0
            while filled < count {
                let (start, space) = (filled, count - filled)
                let got = unsafe bytes.withUnsafeMutableBytes { buffer in
                    unsafe pread(descriptor, buffer.baseAddress?.advanced(by: start), space, off_t(offset) + start)
                }
                if got == 0 { break }
                if got < 0 {
                    if errno == EINTR { continue }
                    throw Self.systemError()
                }
                filled += got
            }
            return Array(bytes.prefix(filled))
        }

        private static func systemError() -> DenyListError {
            let number = errno
            guard let text = unsafe strerror(number) else { return DenyListError("error \(number)") }
            return DenyListError(unsafe String(cString: text))
        }
    }
}

extension DenyFile: ConfigurationValue {
    /// The file at a path.
    convenience init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let path = try FilePath(decoding: node)
        do throws(DenyListError) { try self.init(path: path.text) } catch {
            throw node.error(.configFileUnreadable, "cannot use '\(path.text)': \(error)")
        }
    }
}
