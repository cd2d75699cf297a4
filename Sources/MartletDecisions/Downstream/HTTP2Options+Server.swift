package import MartletConfig
package import MartletHTTP2

extension HTTP2Options {
    package init(_ server: ServerConfiguration) {
        self.init()
        maximumConcurrentStreams = server.http2.maximumConcurrentStreams
        maximumResets = server.http2.maximumResets
        initialWindow = server.http2.initialWindow
        headerBytes = server.limits.headerBytes
        headerFields = server.limits.headerFields
    }
}
