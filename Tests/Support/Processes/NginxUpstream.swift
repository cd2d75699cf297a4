import Foundation

/// A real nginx as an upstream, with a folder of files and an echo of what it was asked.
package final class NginxUpstream: Sendable {
    package let port: UInt16
    /// HTTP/2 in clear text.
    package let frames: UInt16
    /// TLS with HTTP/1.1 and HTTP/2 by ALPN; 0 without a certificate.
    package let secure: UInt16
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// Starts nginx and waits until it accepts.
    /// - Parameters:
    ///   - files: the body of `/files/<name>`.
    ///   - certificate: what it shows under TLS.
    ///   - clientAuthority: whose certificates clients must show there.
    package init(
        files: [String: String] = [:], certificate: CertificateAuthority.Issued? = nil, clientAuthority: String? = nil
    ) throws {
        folder = try TemporaryFolder()
        port = try refusedPort()
        frames = try refusedPort()
        secure = certificate == nil ? 0 : try refusedPort()
        try FileManager.default.createDirectory(atPath: folder.file("files"), withIntermediateDirectories: true)
        for (name, text) in files { try folder.write(text, to: "files/\(name)") }
        var listeners = "listen 127.0.0.1:\(port); listen 127.0.0.1:\(frames) http2;"
        if let certificate {
            listeners += "listen 127.0.0.1:\(secure) ssl http2;"
            listeners += "ssl_certificate \(certificate.certificateFile); ssl_certificate_key \(certificate.keyFile);"
        }
        if let clientAuthority {
            listeners += "ssl_client_certificate \(clientAuthority); ssl_verify_client optional;"
        }
        let configuration = try folder.write(Self.configuration(folder.path, listeners), to: "nginx.conf")
        process = try ChildProcess(
            try Executable.named("nginx"), ["-c", configuration, "-p", folder.path, "-e", folder.file("error.log")],
            output: folder, name: "nginx")
        let port = port
        try waitUntil("nginx listens on \(port)") { (try? RawSocket(connectingTo: .loopback(port))) != nil }
    }

    deinit { process.kill(3) }

    package var url: String { "http://127.0.0.1:\(port)" }

    private static func configuration(_ path: String, _ listeners: String) -> String {
        """
        daemon off;
        master_process off;
        worker_processes 1;
        pid \(path)/nginx.pid;
        events { worker_connections 256; }
        http {
            access_log off;
            client_body_temp_path \(path)/body;
            proxy_temp_path \(path)/proxy;
            fastcgi_temp_path \(path)/fastcgi;
            uwsgi_temp_path \(path)/uwsgi;
            scgi_temp_path \(path)/scgi;
            client_max_body_size 0;
            keepalive_requests 1000000;
            server {
                \(listeners)
                location /files/ { root \(path); }
                location / {
                    default_type text/plain;
                    return 200 "uri=$request_uri host=$host subject=$http_x_auth_subject auth=$http_authorization by=$server_protocol proven=$ssl_client_verify connection=$connection";
                }
            }
        }

        """
    }
}
