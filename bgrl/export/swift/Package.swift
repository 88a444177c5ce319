// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "BgrlNet",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [.library(name: "BgrlNet", targets: ["BgrlNet"])],
    targets: [
        .target(name: "BgrlNet"),
        .testTarget(name: "BgrlNetTests", dependencies: ["BgrlNet"]),
    ]
)
