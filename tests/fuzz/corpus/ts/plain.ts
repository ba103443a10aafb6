# note
@problemName P
@timeStamps false
@missing true
@univariate false
@dimensions 2
@equalLength false
@classLabel true 1 2
@data
1,2,3:4,5,6:1
1,?:2,3:2
