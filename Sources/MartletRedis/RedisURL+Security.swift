package import MartletCore
package import MartletTLS

/// The files that a `rediss://` URL names.
extension RedisURL.Security {
    /// Replaces every file's name.
    package mutating func resolveFiles(_ resolve: (String) -> String) {
        caFile = caFile.map(resolve)
        certificateFile = certificateFile.map(resolve)
        keyFile = keyFile.map(resolve)
    }

    /// Reads the files.
    ///
    /// - Throws: a `tls.…` code, of a file that cannot be used.
    package func makeContext() throws(StoreError) -> TLSClientContext {
        var options = TLSClientOptions(trust: caFile.map { .file($0) } ?? .system)
        if let certificateFile, let keyFile {
            options.identity = TLSIdentityFiles(certificateFile: certificateFile, keyFile: keyFile)
        }
        do { return try TLSClientContext(options) } catch {
            throw StoreError(code: error.code, message: error.message)
        }
    }
}
