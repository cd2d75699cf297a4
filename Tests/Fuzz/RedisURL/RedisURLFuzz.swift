import MartletCore
import MartletRedis

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRedisURL(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: count), as: UTF8.self)
    guard let url = try? RedisURL(text) else { return 0 }
    precondition((0...65_535).contains(url.database))
    precondition((1...RedisURL.maximumSeeds).contains(url.seeds.count))
    for seed in url.seeds {
        switch seed {
        case .tcp(let host, let port): precondition(!host.isEmpty && host.utf8.count <= 253 && port > 0)
        case .unix(let path): precondition(!path.utf8.contains(0) && (2...107).contains(path.utf8.count))
        }
    }
    if let credentials = url.credentials { precondition(credentials.password.count > 0) }
    // What is shown reads back as the same place.
    if case .unix = url.seeds[0] { return 0 }
    guard let again = try? RedisURL(url.description) else { preconditionFailure("\(url) does not read back") }
    precondition(again.layout == url.layout && again.database == url.database)
    return 0
}
