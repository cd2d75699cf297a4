private import Glibc
internal import MartletCore
internal import MartletServer

/// The temporary folder of the demo, accessible only by this user.
struct DemoFolder: Sendable {
    let path: String

    /// - Returns: `nil` if it cannot be created.
    init?() {
        var name = Array("/tmp/martlet-demo-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&name) != nil else { return nil }
        path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Writes a file that is readable only by this user, and returns its path.
    func write(_ bytes: [UInt8], to name: String) throws(StartError) -> String {
        let path = "\(path)/\(name)"
        guard SystemFile.create(path, bytes, mode: 0o600) == nil else {
            throw StartError(code: "server.demo_files", message: "cannot write \(path)", exit: .unavailable)
        }
        return path
    }

    func write(_ secret: Secret, to name: String) throws(StartError) -> String {
        try secret.withBytes { bytes throws(StartError) in try write(Array(bytes), to: name) }
    }

    func remove() {
        if let folder = unsafe opendir(path) {
            while let entry = unsafe readdir(folder) {
                let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { start in
                    unsafe start.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
                }
                if name != "." && name != ".." { unsafe unlink("\(path)/\(name)") }
            }
            unsafe closedir(folder)
        }
        unsafe rmdir(path)
    }
}
