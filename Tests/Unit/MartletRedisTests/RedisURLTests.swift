import MartletCore
import Testing

@testable import MartletRedis

@Suite struct RedisURLTests {
    struct Good: Sendable, CustomTestStringConvertible {
        var text: String
        var address: RedisURL.Address
        var user: String?
        var password: String?
        var database = 0
        var isSecure = false
        var caFile: String?

        var testDescription: String { text }
    }

    static let good = [
        Good(text: "redis://localhost", address: .tcp(host: "localhost", port: 6379)),
        Good(text: "REDIS://cache.example.com:6380", address: .tcp(host: "cache.example.com", port: 6380)),
        Good(text: "redis://localhost/", address: .tcp(host: "localhost", port: 6379)),
        Good(text: "redis://localhost/7", address: .tcp(host: "localhost", port: 6379), database: 7),
        Good(text: "redis://[::1]:1/0", address: .tcp(host: "::1", port: 1)),
        Good(text: "redis://[fe80::1]", address: .tcp(host: "fe80::1", port: 6379)),
        Good(text: "redis://:pw@h", address: .tcp(host: "h", port: 6379), password: "pw"),
        Good(text: "redis://ann:p%40s%2Fs%3a@h:2", address: .tcp(host: "h", port: 2), user: "ann", password: "p@s/s:"),
        Good(text: "redis://ann:a@b:c@h", address: .tcp(host: "h", port: 6379), user: "ann", password: "a@b:c"),
        Good(text: "rediss://h/1", address: .tcp(host: "h", port: 6379), database: 1, isSecure: true),
        Good(
            text: "rediss://h?ca_file=/etc/my%20ca.pem", address: .tcp(host: "h", port: 6379), isSecure: true,
            caFile: "/etc/my ca.pem"),
        Good(text: "redis+unix:///run/redis.sock", address: .unix(path: "/run/redis.sock")),
        Good(
            text: "redis+unix://:pw@/run/re%64is.sock?db=15", address: .unix(path: "/run/redis.sock"), password: "pw",
            database: 15),
    ]

    @Test(arguments: good)
    func `reads what is where`(sample: Good) throws {
        let url = try RedisURL(sample.text)
        #expect(url.layout == .single(sample.address))
        #expect(url.credentials?.user == sample.user)
        #expect(url.credentials?.password.withBytes { String(decoding: $0, as: UTF8.self) } == sample.password)
        #expect(url.database == sample.database)
        #expect((url.security != nil) == sample.isSecure)
        #expect(url.security?.caFile == sample.caFile)
        if let password = sample.password { #expect(!"\(url)".contains(password)) }
    }

    static let bad: [(String, ErrorCode)] = [
        ("localhost", "redis.url_scheme_unknown"), ("", "redis.url_scheme_unknown"),
        ("http://h", "redis.url_scheme_unknown"), ("memory:", "redis.url_scheme_unknown"),
        ("redis+sentinel://h", "redis.url_master_missing"), ("redis+sentinel://h/", "redis.url_master_missing"),
        ("redis+sentinel://h/a b", "redis.url_malformed"), ("redis+sentinel://h/a%20b", "redis.url_master_missing"),
        ("redis+sentinel://h/m/x", "redis.url_database_invalid"),
        ("redis+sentinel://h/m/0/1", "redis.url_master_missing"),
        ("redis+sentinel:///m", "redis.url_host_missing"), ("redis+sentinel://h,/m", "redis.url_host_missing"),
        ("redis+sentinel://h,h:26379/m", "redis.url_host_invalid"),
        ("redis+sentinel://h:0/m", "redis.url_port_invalid"),
        ("redis+sentinel://h/m?tls=yes", "redis.url_option_unknown"),
        ("redis+sentinel://h/m?ca_file=/a", "redis.url_option_unknown"),
        ("redis+cluster://h/1", "redis.url_database_invalid"), ("redis+cluster://", "redis.url_host_missing"),
        ("redis+cluster://h?ca_file=/a", "redis.url_option_unknown"),
        ("rediss+cluster://h?cert_file=/a", "redis.url_certificate_incomplete"),
        ("rediss+sentinel://h/m", "redis.url_scheme_unknown"),
        ("redis:h", "redis.url_malformed"), ("redis:/h", "redis.url_malformed"), ("redis://h#a", "redis.url_malformed"),
        ("redis://h h", "redis.url_malformed"), ("redis://h\r\nX", "redis.url_malformed"),
        ("redis://", "redis.url_host_missing"), ("redis://:6379", "redis.url_host_missing"),
        ("redis://:pw@", "redis.url_host_missing"), ("redis:///1", "redis.url_host_missing"),
        ("redis://[::1", "redis.url_host_invalid"), ("redis://[::1]x", "redis.url_host_invalid"),
        ("redis://[h]", "redis.url_host_invalid"), ("redis://h%41", "redis.url_host_invalid"),
        ("redis://hé", "redis.url_host_invalid"), ("redis+unix://host/run/r.sock", "redis.url_host_invalid"),
        ("redis://h:", "redis.url_port_invalid"), ("redis://h:0", "redis.url_port_invalid"),
        ("redis://h:65536", "redis.url_port_invalid"), ("redis://h:+1", "redis.url_port_invalid"),
        ("redis://::1:6379", "redis.url_host_missing"), ("redis://h:99999999999999999999", "redis.url_port_invalid"),
        ("redis://h/a", "redis.url_database_invalid"), ("redis://h/-1", "redis.url_database_invalid"),
        ("redis://h/1/", "redis.url_database_invalid"), ("redis://h/65536", "redis.url_database_invalid"),
        ("redis+unix:///r.sock?db=", "redis.url_database_invalid"),
        ("redis://ann@h", "redis.url_password_missing"), ("redis://ann:@h", "redis.url_password_missing"),
        ("redis://:%zz@h", "redis.url_escape_invalid"), ("redis://:%f@h", "redis.url_escape_invalid"),
        ("redis://:%ff@h", "redis.url_escape_invalid"), ("redis://:a%00@h", "redis.url_escape_invalid"),
        ("redis+unix://", "redis.url_path_invalid"), ("redis+unix:///", "redis.url_path_invalid"),
        ("redis+unix:///" + String(repeating: "a", count: 107), "redis.url_path_invalid"),
        ("rediss://h?ca_file=", "redis.url_path_invalid"), ("redis://h?ca_file=/a", "redis.url_option_unknown"),
        ("rediss://h?cert_file=/c", "redis.url_certificate_incomplete"),
        ("rediss://h?key_file=/k&ca_file=/a", "redis.url_certificate_incomplete"),
        ("redis://h?cert_file=/c&key_file=/k", "redis.url_option_unknown"),
        ("rediss://h?verify=no", "redis.url_option_unknown"), ("rediss://h?ca_file", "redis.url_option_unknown"),
        ("rediss://h?ca_file=a&ca_file=b", "redis.url_option_unknown"), ("redis://h?", "redis.url_option_unknown"),
        ("redis://h?db=1", "redis.url_option_unknown"),
    ]

    @Test(arguments: bad)
    func `says what is wrong and never shows the password`(text: String, code: ErrorCode) {
        let error = #expect(throws: RedisURLError.self) { try RedisURL(text) }
        #expect(error?.code == code)
        #expect(error?.message.contains("ann") == false)
    }

    @Test
    func `reads sentinels and clusters`() throws {
        let sentinel = try RedisURL("redis+sentinel://ann:pw@s1,s2:1,[::1]:2/my-master.1/3?tls=true&ca_file=/ca.pem")
        #expect(
            sentinel.layout
                == .sentinel(
                    [.tcp(host: "s1", port: 26379), .tcp(host: "s2", port: 1), .tcp(host: "::1", port: 2)],
                    master: "my-master.1"))
        #expect(sentinel.database == 3 && sentinel.credentials?.user == "ann" && sentinel.security?.caFile == "/ca.pem")
        #expect("\(sentinel)" == "redis+sentinel://s1:26379,s2:1,[::1]:2/my-master.1/3?tls=true")
        let plain = try RedisURL("redis+sentinel://s1/m?tls=false")
        #expect(plain.security == nil && plain.database == 0)
        let cluster = try RedisURL("rediss+cluster://n1:7000,n2/")
        #expect(cluster.layout == .cluster([.tcp(host: "n1", port: 7000), .tcp(host: "n2", port: 6379)]))
        #expect(cluster.security != nil && "\(cluster)" == "rediss+cluster://n1:7000,n2:6379")
        #expect(try RedisURL("redis+cluster://n").security == nil)
    }
}
