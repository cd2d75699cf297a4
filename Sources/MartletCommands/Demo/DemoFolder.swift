private import Glibc

/// The temporary folder of the demo, accessible only by this user.
struct DemoFolder: Sendable {
    let path: String

    /// - Returns: `nil` if it cannot be created.
    init?() {
        var name = Array("/tmp/martlet-demo-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&name) != nil else { return nil }
        path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes the folder with the files in it.
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
